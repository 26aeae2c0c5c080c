import type { Lease } from '../../agent/journal/lease.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import type { MachineClock, Timeline } from './clock.ts';
import { Life } from './life.ts';
import { NodeHost } from './node-host.ts';
import { startAgentLife } from './programs/agent.ts';
import { changeText, guardMachine } from './programs/guard-machine.ts';
import { recordingLogger, textOf } from './record.ts';
import { openOtherPrograms } from './standins/other-programs.ts';
import { NodeRuntime, type Serving } from './standins/runtime.ts';
import { vandalise } from './standins/vandals.ts';
import { between, type Draw, type Streams } from './streams.ts';

/** What an agent with its machine needs from its world. */
type WholeAgentDeps = {
  readonly nodeName: string;
  readonly clock: MachineClock;
  readonly time: Timeline;
  readonly streams: Streams;
  readonly note: (who: string, what: string) => void;
  readonly violate: (auditor: string, text: string) => void;
  /** Makes a client of the API server for a life of this name. */
  readonly client: (lifeName: string) => KubeClient;
  readonly flags: readonly string[];
  readonly onLife: (life: Life) => void;
  /** The agent is about to change something on its machine. */
  readonly onChange: (call: string, values: readonly unknown[]) => void;
  readonly onAddress: (uid: string, ips: readonly string[], netns: string) => void;
};

/** How long an agent that died is away, milliseconds. */
const AWAY_MS = [500, 5_000] as const;
/** How long the kernel takes until it has read what a caller sent before. */
const INPUT_MS = [0, 3_000] as const;
const JITTER_MS = [0, 3] as const;

/** The real agent of a node: one life after the other, on one machine, with the runtime that calls it. */
export class WholeAgent {
  readonly host: NodeHost;
  readonly runtime: NodeRuntime;
  /** Flags of the next life. */
  flags: readonly string[];
  /** Since when the present life serves, true time; undefined while none does. */
  servesSinceMs: number | undefined;
  /** When somebody else changed the node last, true time; undefined when that is mended. */
  touchedMs: number | undefined;
  /** When each address was flushed from connection tracking last, true time. */
  readonly flushedMs = new Map<string, number>();
  /** Lists what other programs have put on the machine since it booted, and somebody changed. */
  changedOfOthers: () => readonly string[] = () => [];
  readonly #deps: WholeAgentDeps;
  readonly #away: Draw;
  readonly #vandal: Draw;
  #serving: Serving | undefined;
  #life: Life | undefined;
  #lives = 0;
  #boots = 0;
  #isOff = false;

  constructor(deps: WholeAgentDeps) {
    const { nodeName, clock, time, streams, note, onAddress } = deps;
    this.#deps = deps;
    this.flags = deps.flags;
    this.#away = streams.of(`away agent-${nodeName}`);
    this.#vandal = streams.of(`vandal ${nodeName}`);
    this.host = new NodeHost(clock, `boot-${nodeName}`);
    this.runtime = new NodeRuntime({
      ...{ host: this.host, time, clock, draw: streams.of(`runtime ${nodeName}`), onAddress },
      note: (what) => note(`runtime-${nodeName}`, what),
      serving: () => this.#serving,
      late: (what) => deps.violate('A14', `${nodeName}: ${what} took too long`),
    });
  }

  /** The life of now, or the last one. */
  get life(): Life | undefined {
    return this.#life;
  }

  /** Whether an agent serves. */
  get isServing(): boolean {
    return this.#serving !== undefined;
  }

  /** What the journal has leased. */
  get leases(): readonly Lease[] {
    return [...(this.host.journal.content?.leases.values() ?? [])];
  }

  get addresses(): readonly string[] {
    return this.leases.flatMap(({ addresses }) => addresses.map(({ ip }) => ip));
  }

  addressesOn(eniId: string): readonly string[] {
    const all = this.leases.flatMap(({ addresses }) => addresses);
    return all.filter((one) => one.eniId === eniId).map(({ ip }) => ip);
  }

  /** Plugs the primary interface in and sets it up, as the image of a node does. */
  boot({ mac, address, gateway }: { readonly mac: string; readonly address: string; readonly gateway: string }): void {
    const { kernel } = this.host;
    const { link, address: addresses, route } = kernel.openRtnetlink(kernel.host);
    link.set({ ifindex: 1, up: true });
    const ifindex = kernel.plugIn(kernel.host, { ifname: 'eth0', address: mac });
    link.set({ ifindex, up: true });
    addresses.add({ ifindex, address, prefixlen: 24 });
    route.add({ family: 2, gateway, oif: ifindex });
    this.changedOfOthers = openOtherPrograms(kernel, { ifindex, gateway });
  }

  /** An ENI is attached to the instance. */
  plugIn(mac: string): void {
    const { kernel } = this.host;
    const names = new Set(this.#links().map(({ ifname }) => ifname));
    let serial = 1;
    while (names.has(`eth${serial}`)) serial++;
    kernel.plugIn(kernel.host, { ifname: `eth${serial}`, address: mac });
  }

  /** An ENI is detached from it. */
  unplug(mac: string): void {
    const { kernel } = this.host;
    const link = this.#links().find(({ permAddress }) => permAddress === mac);
    if (link !== undefined) kernel.unplug(kernel.host, link.ifindex);
  }

  /** Starts a life. */
  async start(): Promise<void> {
    const { nodeName, streams, clock, time, note, violate } = this.#deps;
    this.#lives += 1;
    const name = `agent-${nodeName}-${String(this.#lives).padStart(3, '0')}`;
    const jitter = streams.of(`${name} jitter`);
    const life = new Life(name, {
      clock,
      note: (what) => note(name, what),
      jitterMs: () => Math.floor(between(jitter, JITTER_MS)),
      onCall: () => () => {},
      onDeath: () => this.#replace(),
    });
    this.#life = life;
    this.#deps.onLife(life);
    const ports = this.host.ports({
      ...{ clock: life.clock, nodeName },
      serving: ({ useCases }) => {
        if (life.isDead) return;
        this.#serving = { life, useCases };
        this.servesSinceMs = time.nowMs;
        note(name, 'serves');
      },
    });
    const log = recordingLogger((what) => {
      if (!life.isDead) note(name, what);
    });
    const failed = (error: Error): void => {
      if (life.isDead) return;
      violate('A15', `${name} ended by itself: ${textOf(error)}`);
      life.kill();
    };
    const host = guardMachine(
      {
        ...ports,
        conntrack: {
          flush: async (ips) => this.#flush(ips),
          flushOrThrow: async (ips) => this.#flush(ips),
        },
        readPendingInput: () => life.take(life.clock.sleep(between(jitter, INPUT_MS))),
      },
      life,
      (call, values) => {
        note(name, changeText(call, values));
        this.#deps.onChange(call, values);
      },
    );
    const kube = this.#deps.client(name);
    await startAgentLife({ life, nodeName, host, streams, log, kube, flags: this.flags, failed }).catch(failed);
  }

  /** Kills the life of now; another one begins after a while. */
  kill(): void {
    this.#life?.kill();
  }

  /** Ends the life of now, and has the next ones run with other flags. */
  restartWith(...flags: readonly string[]): void {
    this.flags = [...this.#deps.flags, ...flags];
    this.kill();
  }

  /** Somebody else changes something on the machine. Resolves when it is done; takes a few milliseconds. */
  async vandalise(what: Parameters<typeof vandalise>[1]): Promise<void> {
    const { time, note, nodeName } = this.#deps;
    note(`vandal-${nodeName}`, what);
    this.touchedMs = time.nowMs;
    await vandalise(this.host, what, this.#vandal);
    this.touchedMs = time.nowMs;
  }

  /** The machine boots, and the agent with it; then it has to be booted and plugged in again. Its kernel knows no connection any more. */
  reboot(): void {
    const { nodeName, clock, time } = this.#deps;
    this.kill();
    clock.reboot();
    for (const ip of this.addresses) this.flushedMs.set(ip, time.nowMs);
    this.runtime.reboot();
    this.host.reboot(`boot-${nodeName}-${++this.#boots}`);
  }

  /** The machine is off. */
  turnOff(): void {
    this.#isOff = true;
    this.runtime.turnOff();
    this.kill();
  }

  #flush(ips: readonly string[]): void {
    for (const ip of ips) this.flushedMs.set(ip, this.#deps.time.nowMs);
  }

  #links() {
    const { kernel } = this.host;
    return kernel.openRtnetlink(kernel.host).link.list();
  }

  #replace(): void {
    this.#serving = undefined;
    this.servesSinceMs = undefined;
    if (this.#isOff) return;
    const { time } = this.#deps;
    void time.sleep(between(this.#away, AWAY_MS)).then(() => {
      if (!this.#isOff) void this.start();
    });
  }
}

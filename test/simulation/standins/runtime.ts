import type { AttachCommand } from '../../../agent/attachment/attach-command.ts';
import type { PodIdentity } from '../../../agent/pool/lease-static.ts';
import type { AgentUseCases } from '../../../agent/server/agent-service.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { Timeline } from '../clock.ts';
import type { Life } from '../life.ts';
import type { NodeHost } from '../node-host.ts';
import { textOf } from '../record.ts';
import { between, type Draw } from '../streams.ts';
import type { AddressGiver } from './kubelet.ts';

/** An agent that accepts calls, with the life that it is of. */
export type Serving = { readonly life: Life; readonly useCases: AgentUseCases };

/** What a runtime works with. */
type RuntimeDeps = {
  readonly host: NodeHost;
  readonly time: Timeline;
  readonly clock: Clock;
  readonly draw: Draw;
  readonly note: (what: string) => void;
  readonly serving: () => Serving | undefined;
  /** Something took longer than it may. */
  readonly late: (what: string) => void;
  /** A Pod has its network. */
  readonly onAddress: (uid: string, ips: readonly string[], netns: string) => void;
};

type Wanted = {
  readonly pod: PodIdentity;
  readonly ended: PromiseWithResolvers<void>;
  readonly over: PromiseWithResolvers<void>;
  isWanted: boolean;
  /** Of the sandbox whose ADD is under way. */
  adding: string | undefined;
};

/** How long an executable takes to start, milliseconds. */
const EXEC_MS = [2, 8] as const;
/** How long a call may take. */
const CALL_MS = 30_000;
/** So much later a DEL may come again. */
const LATE_MS = [0, 40_000] as const;
const AGAIN_MS = 1_000;
const MOST_AGAIN_MS = 10_000;
/** How long a DEL may take that an agent answers. */
const DEL_MS = 10_000;
/** How often a Pod that ends while its ADD is under way has its DEL at once. */
const IMPATIENT = 0.7;
const IF_NAME = 'eth0';

/**
 * The container runtime of a node, and kubelet as far as it has it try again. Each Pod that wants an address gets a sandbox and
 * an ADD; when that fails, a DEL and another sandbox. Its DEL is repeated until the agent has done it; then the namespace goes.
 */
export class NodeRuntime implements AddressGiver {
  /** Containers whose ADD some agent has not ended. */
  readonly adding = new Set<string>();
  /** How often the DEL of a sandbox is sent: with `never` the sandbox goes without one, with `twice` one comes again later. */
  dels: 'once' | 'twice' | 'never' = 'once';
  readonly #deps: RuntimeDeps;
  readonly #pods = new Map<string, Wanted>();
  #sandboxes = 0;
  #boots = 0;
  #isOff = false;

  constructor(deps: RuntimeDeps) {
    this.#deps = deps;
  }

  add(pod: PodIdentity): void {
    const ends = () => Promise.withResolvers<void>();
    const wanted: Wanted = { pod, ended: ends(), over: ends(), isWanted: true, adding: undefined };
    this.#pods.set(pod.uid, wanted);
    void this.#serve(wanted).then(() => wanted.over.resolve());
  }

  async remove(uid: string): Promise<void> {
    const wanted = this.#pods.get(uid);
    if (wanted === undefined) return;
    wanted.isWanted = false;
    wanted.ended.resolve();
    const { adding } = wanted;
    if (adding !== undefined && this.#deps.draw() < IMPATIENT) void this.#detach(adding);
    await wanted.over.promise;
    this.#pods.delete(uid);
  }

  /** The machine is off: nothing is tried any more. */
  turnOff(): void {
    this.#isOff = true;
  }

  /** The machine boots: no sandbox is left, and nothing is known of any. */
  reboot(): void {
    this.#boots += 1;
    this.adding.clear();
    for (const { ended } of this.#pods.values()) ended.resolve();
    this.#pods.clear();
  }

  /** Lists what CHECK finds of the Pods that run, a line each. */
  async check(): Promise<readonly string[]> {
    const found: string[] = [];
    for (const { id, netns, state } of [...this.#deps.host.sandboxes.values()]) {
      if (state !== 'ready' || this.adding.has(id)) continue;
      const outcome = await this.#check({ containerId: id, ifName: IF_NAME, netns });
      if (outcome === 'gone') found.push(`CHECK of ${id}: no answer`);
      else if (outcome.kind === 'failed') found.push(`CHECK of ${id}: ${outcome.failure.msg}`);
      else found.push(...outcome.differences.map((difference) => `CHECK of ${id}: ${difference}`));
    }
    return found;
  }

  /** Tries again while an agent that died is replaced. */
  async #check(command: Parameters<AgentUseCases['check']>[0]) {
    const { time } = this.#deps;
    for (const endMs = time.nowMs + CALL_MS; ; await time.sleep(AGAIN_MS)) {
      const outcome = await this.#call((calls) => calls.check(command));
      if (outcome !== 'gone' || time.nowMs >= endMs) return outcome;
    }
  }

  async #serve(wanted: Wanted): Promise<void> {
    const { host, time, draw, note, onAddress } = this.#deps;
    const { pod } = wanted;
    const boot = this.#boots;
    const isOver = (): boolean => this.#isOff || this.#boots !== boot;
    for (let attempt = 1; wanted.isWanted && !isOver(); attempt++) {
      const id = `c${String(++this.#sandboxes).padStart(4, '0')}`;
      const of = { podNamespace: pod.namespace, podName: pod.name, podUid: pod.uid };
      const netns = host.startSandbox({ id, state: 'ready', ...of });
      wanted.adding = id;
      host.unlisted.add(id);
      const outcome = await this.#attach({ ...command(id, netns), ...of });
      host.unlisted.delete(id);
      wanted.adding = undefined;
      if (isOver()) return;
      if (outcome !== 'gone' && outcome.kind === 'attached' && wanted.isWanted) {
        onAddress(
          pod.uid,
          outcome.lease.addresses.map(({ ip }) => ip),
          `cni-${id}`,
        );
        await wanted.ended.promise;
      } else note(`${pod.name} ADD: ${outcome === 'gone' ? 'no agent' : textOf(outcome)}`);
      if (isOver()) return;
      const sandbox = host.sandboxes.get(id);
      if (sandbox !== undefined) host.sandboxes.set(id, { ...sandbox, state: 'not-ready' });
      while (this.dels !== 'never' && !(await this.#detach(id)) && !isOver()) await time.sleep(AGAIN_MS);
      if (isOver()) return;
      host.endSandbox(id);
      if (this.dels === 'twice') void time.sleep(between(draw, LATE_MS)).then(() => this.#detach(id));
      if (wanted.isWanted) await time.sleep(Math.min(attempt * AGAIN_MS, MOST_AGAIN_MS));
    }
  }

  async #attach(command: Omit<AttachCommand, 'deadlineAtMs'>) {
    const { clock } = this.#deps;
    const { containerId } = command;
    return await this.#call(async (calls, signal) => {
      this.adding.add(containerId);
      const done = calls.attach({ ...command, deadlineAtMs: clock.nowMs() + CALL_MS }, signal);
      return await done.finally(() => this.adding.delete(containerId));
    });
  }

  /** Returns whether it was done. */
  async #detach(containerId: string): Promise<boolean> {
    const { time, late, serving } = this.#deps;
    const sinceMs = time.nowMs;
    const called = serving();
    const outcome = await this.#call(async (calls) => ({
      failure: await calls.detach({ containerId, ifName: IF_NAME }),
    }));
    if (called?.life.isDead === false && time.nowMs - sinceMs > DEL_MS) late(`DEL of ${containerId}`);
    return outcome !== 'gone' && outcome.failure === undefined;
  }

  /** Calls the agent as an executable does; `gone` when there is none, it dies, or it takes too long. */
  async #call<T>(call: (calls: AgentUseCases, signal: AbortSignal) => Promise<T>): Promise<T | 'gone'> {
    const { time, draw, serving } = this.#deps;
    await time.sleep(between(draw, EXEC_MS));
    const served = serving();
    if (served === undefined || served.life.isDead) return 'gone';
    const { life, useCases } = served;
    const hungUp = new AbortController();
    const { promise: gone, resolve } = Promise.withResolvers<'gone'>();
    const onDeath = (): void => {
      this.adding.clear();
      resolve('gone');
    };
    life.signal.addEventListener('abort', onDeath, { once: true });
    const late = time.sleep(CALL_MS, hungUp.signal).then(
      () => 'gone' as const,
      () => 'gone' as const,
    );
    const answer = call(useCases, hungUp.signal).catch((error: unknown) => {
      if (life.isDead) return 'gone' as const;
      throw error;
    });
    const outcome = await Promise.race([answer, late, gone]);
    life.signal.removeEventListener('abort', onDeath);
    hungUp.abort(new Error('the caller hung up'));
    return life.isDead ? 'gone' : outcome;
  }
}

function command(containerId: string, netns: string) {
  return {
    ...({ plugin: 'route-eni', containerId, ifName: IF_NAME, netns, network: 'tke-route-eni' } as const),
    ...{ mtu: 0, disableIpv6: false, uplink: false },
  };
}

import type { NetnsView } from '../../support/netns.ts';
import type { ProxyTable } from '../api/model/clb/proxy-table.ts';
import type { ListenerPath } from '../api/model/clb/types.ts';
import { PASSED_MARK, type SecurityGroups } from '../security-groups.ts';
import { HealthChecks, type HealthFound } from './health-checks.ts';
import { listenerRules } from './listener-chain.ts';
import { Proxies } from './proxy/proxies.ts';
import { usableTargets } from './usable-targets.ts';

/** Where checks of layer 4 come from (100.64.0.0/10, as the real ones). */
const PROBE_SOURCE = '100.64.0.10';

/**
 * A device that swallows: what has a VIP and no listener goes there, also after the last listener of a VIP has gone. It makes
 * the router answer ARP for VIPs too. An ENI that gets the address later takes its route over.
 */
const SINK = 'clb';

/**
 * Translates the destination of connections to listeners; connection tracking translates the replies back. A packet in the
 * middle of a connection that is not tracked belongs to one that was cut: its client gets a RST, or nothing.
 */
const RULESET = `
table ip clb {
  set vips { type ipv4_addr
  }
  set resets { type ipv4_addr . inet_service
  }
  map listeners { type ipv4_addr . inet_proto . inet_service : verdict
  }
  chain cut { type filter hook prerouting priority mangle; policy accept;
    ip daddr . tcp dport @resets ct state new tcp flags & (fin|syn|rst|ack) != syn reject with tcp reset
    ip daddr @vips ct state new tcp flags & (fin|syn|rst|ack) != syn drop
  }
  chain nat { type nat hook prerouting priority dstnat; policy accept;
    ip daddr . meta l4proto . th dport vmap @listeners
  }
}
`;

/**
 * The data plane of load balancers, in the router's namespace: packets to a VIP go to a target of the listener, which gets
 * them with the client's address. A target without weight keeps its connections and gets no new one; one that is
 * deregistered loses them. Changes are made one after the other.
 */
export class LoadBalancing {
  /** Called with what the health checks find. */
  onHealth: ((found: HealthFound) => void) | undefined;
  readonly #router: NetnsView;
  readonly #groups: SecurityGroups;
  readonly #checks: HealthChecks;
  readonly #proxies: Proxies;
  readonly #paths = new Map<string, ListenerPath>();
  /** What checks found, by listener and `ip:port`. */
  readonly #alive = new Map<string, Map<string, boolean>>();
  #hasTable = false;
  #work: Promise<void> = Promise.resolve();

  /**
   * @param groups those of targets, which the listener may pass
   * @param prefix start of the names of namespaces that are made
   */
  constructor(router: NetnsView, groups: SecurityGroups, prefix: string) {
    this.#router = router;
    this.#groups = groups;
    this.#checks = new HealthChecks(router, PROBE_SOURCE, (found) => this.#note(found));
    this.#proxies = new Proxies(router, prefix, (found) => this.onHealth?.(found));
  }

  /** Makes packets of a listener go so from now on, in one step. Idempotent. */
  setListener(path: ListenerPath): Promise<void> {
    return this.#inTurn(async () => {
      const before = this.#paths.get(path.listenerId);
      await this.#prepare();
      this.#paths.set(path.listenerId, path);
      this.#forgetChecks(path);
      await this.#write(path);
      await this.#groups.pass(path.listenerId, path.passes === true ? checkedOf(path) : []);
      this.#checks.follow(path);
      const keys = new Set(path.targets.map(keyOf));
      for (const target of before?.targets ?? []) if (!keys.has(keyOf(target))) await this.#cut(path, target);
    });
  }

  /** Ends a listener and cuts its connections. Idempotent. */
  removeListener(listenerId: string): Promise<void> {
    return this.#inTurn(async () => {
      const path = this.#paths.get(listenerId);
      if (path === undefined) return;
      this.#paths.delete(listenerId);
      this.#alive.delete(listenerId);
      this.#checks.follow({ ...path, targets: [] });
      await this.#groups.pass(listenerId, []);
      const isLast = ![...this.#paths.values()].some(({ vip }) => vip === path.vip);
      await this.#router.nft(
        [
          `delete element ip clb listeners { ${matchOf(path)} }`,
          ...[listenerId, admittedChain(path)].map((chain) => `flush chain ip clb ${chain}`),
          ...[listenerId, admittedChain(path)].map((chain) => `delete chain ip clb ${chain}`),
          ...resetsLines(path, false),
          ...(isLast ? [`delete element ip clb vips { ${path.vip} }`] : []),
        ].join('\n'),
      );
      for (const target of path.targets) await this.#cut(path, target);
    });
  }

  /**
   * Has a load balancer serve these listeners of layer 7 from now on, and no others; none: its proxy ends. Listeners of layer 4
   * of the same VIP stay. No connection of a client ends but those of a listener that goes. Idempotent.
   * @throws Error when the proxy refuses the table; requests go on as before
   */
  setProxy(table: ProxyTable): Promise<void> {
    return this.#inTurn(async () => {
      if (table.listeners.length === 0 && this.#proxies.portOf(table.vip) === undefined) return;
      await this.#prepare();
      try {
        await this.#proxies.set(table);
      } finally {
        await this.#lead(table.vip);
      }
    });
  }

  /** Waits until packets follow what the checks have found so far. */
  async settled(): Promise<void> {
    await this.#work;
    await this.#proxies.settled();
  }

  /** Ends the health checks and the proxies. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([this.#checks.close(), this.#proxies.close()]);
    // What was under way may fail: its namespace goes.
    await this.#work.catch(() => undefined);
  }

  async #prepare(): Promise<void> {
    if (this.#hasTable) return;
    await this.#router.ipBatch([
      // Without ARP its frames carry its own MAC, so that the other end takes none of them.
      `link add ${SINK} arp off type veth peer name ${SINK}-end`,
      `link set ${SINK}-end up`,
      `link set ${SINK} up`,
      `address add ${PROBE_SOURCE}/32 dev ${SINK}`,
    ]);
    await this.#router.nft(RULESET);
    this.#hasTable = true;
  }

  async #lead(vip: string): Promise<void> {
    await this.#router.ipBatch([`route replace ${vip}/32 dev ${this.#proxies.portOf(vip) ?? SINK}`]);
  }

  async #write(path: ListenerPath): Promise<void> {
    const { listenerId } = path;
    const usable = usableTargets(path, this.#alive.get(listenerId));
    await this.#lead(path.vip);
    const admitted = admittedChain(path);
    const passing = path.passes === true ? [`ct mark set ${PASSED_MARK}`] : [];
    const rules = [`ct timeout set "${idleNameOf(path)}"`, ...passing, ...listenerRules(path, usable)];
    await this.#router.nft(
      [
        idleLine(path),
        ...[listenerId, admitted].flatMap((chain) => [`add chain ip clb ${chain}`, `flush chain ip clb ${chain}`]),
        ...admissionRules(path).map((rule) => `add rule ip clb ${listenerId} ${rule}`),
        ...rules.map((rule) => `add rule ip clb ${admitted} ${rule}`),
        `add element ip clb listeners { ${matchOf(path)} : goto ${listenerId} }`,
        `add element ip clb vips { ${path.vip} }`,
        ...resetsLines(path, path.resets),
      ].join('\n'),
    );
  }

  /** A target that was deregistered is checked again when it comes again. */
  #forgetChecks({ listenerId, targets }: ListenerPath): void {
    const keys = new Set(targets.map(keyOf));
    const alive = [...(this.#alive.get(listenerId) ?? [])].filter(([key]) => keys.has(key));
    this.#alive.set(listenerId, new Map(alive));
  }

  #note(found: HealthFound): void {
    const alive = this.#alive.get(found.listenerId);
    const path = this.#paths.get(found.listenerId);
    if (alive === undefined || path === undefined || !path.targets.some((one) => keyOf(one) === found.key)) return;
    alive.set(found.key, found.isAlive);
    this.onHealth?.(found);
    void this.#inTurn(async () => {
      const now = this.#paths.get(found.listenerId);
      if (now !== undefined) await this.#write(now);
    }).catch(() => undefined);
  }

  async #cut(path: ListenerPath, target: { readonly ip: string; readonly port: number }): Promise<void> {
    const from = ['-p', path.protocol.toLowerCase(), '-d', path.vip, '--dport', `${path.port}`];
    const to = ['-r', target.ip, '--reply-port-src', `${target.port}`];
    // It fails when there is none.
    await this.#router.tryRun(['conntrack', '-D', ...from, ...to]);
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => undefined);
    return done;
  }
}

/** What the checks of a listener reach. */
function checkedOf({ targets, healthCheck: { CheckPort } }: ListenerPath): readonly { ip: string; port: number }[] {
  return targets.map(({ ip, port }) => ({ ip, port: CheckPort > 0 ? CheckPort : port }));
}

function keyOf({ ip, port }: { readonly ip: string; readonly port: number }): string {
  return `${ip}:${port}`;
}

function matchOf({ vip, protocol, port }: ListenerPath): string {
  return `${vip} . ${protocol.toLowerCase()} . ${port}`;
}

/** The chain with what happens to a connection that the security groups admit. */
function admittedChain({ listenerId }: ListenerPath): string {
  return `${listenerId}-admitted`;
}

/** Rules by which the security groups of a load balancer decide who comes in: the first that fits, else nobody. */
function admissionRules(path: ListenerPath): readonly string[] {
  const enter = `goto ${admittedChain(path)}`;
  if (path.admission === undefined) return [enter];
  return [...path.admission.map(({ cidr, isAccepted }) => `ip saddr ${cidr} ${isAccepted ? enter : 'drop'}`), 'drop'];
}

/** Idle times pass fifty times as fast as ordered, as health checks do; a second is the least that nft takes. */
const IDLE_SPEED = 50;

function idleOf({ idleSeconds }: ListenerPath): number {
  return Math.max(1, Math.ceil(idleSeconds / IDLE_SPEED));
}

function idleNameOf(path: ListenerPath): string {
  return `${path.protocol.toLowerCase()}-${idleOf(path)}`;
}

/** An nft line that has a name for an idle time; connections take it over when they begin, so that none is ever changed. */
function idleLine(path: ListenerPath): string {
  const seconds = idleOf(path);
  const policy = path.protocol === 'TCP' ? `established : ${seconds}` : `unreplied : ${seconds}, replied : ${seconds}`;
  const of = `protocol ${path.protocol.toLowerCase()}; l3proto ip;`;
  return `add ct timeout ip clb ${idleNameOf(path)} { ${of} policy = { ${policy} }; }`;
}

/** nft lines that have clients of a listener of TCP get RSTs, or not. What is to be deleted is added first: it may be missing. */
function resetsLines({ vip, protocol, port }: ListenerPath, isOn: boolean): readonly string[] {
  if (protocol !== 'TCP') return [];
  const element = `element ip clb resets { ${vip} . ${port} }`;
  return isOn ? [`add ${element}`] : [`add ${element}`, `delete ${element}`];
}

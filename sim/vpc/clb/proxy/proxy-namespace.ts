import { fileURLToPath } from 'node:url';
import { startTimer } from '../../../../runtime/clock.ts';
import type { Child } from '../../../support/child.ts';
import { NetnsView } from '../../../support/netns.ts';
import { run } from '../../../support/run.ts';
import { deleteNetnsNames } from '../../../support/run-names.ts';
import type { ProxyRule, ProxyTable } from '../../api/model/clb/proxy-table.ts';
import { HealthChecks, type HealthFound } from '../health-checks.ts';
import { usableTargets } from '../usable-targets.ts';
import type { ProxyAnswer, ProxyOrder } from './proxy-order.ts';

const ORDER_MS = 20_000;
/** Of one table as text: what 50 listeners with full rules have stays below. */
const MOST_BYTES = 32 * 2 ** 20;
/** The router's address on the link of a load balancer. */
const GATEWAY = '169.254.0.1';

/** Where a load balancer is plugged in. */
type Place = {
  readonly router: NetnsView;
  /** Start of the names of namespaces of the VPC. */
  readonly prefix: string;
  /** 1 to 65,535; unique in the VPC. */
  readonly serial: number;
};

/**
 * The namespace of a load balancer of layer 7, on a port of its own of the router: it has the VIP, the proxy, and the checks
 * of targets with their source address. Made and ended by `Proxies`.
 */
export class ProxyNamespace {
  readonly netns: NetnsView;
  readonly vip: string;
  /** Interface name in the router's namespace. */
  readonly port: string;
  readonly #place: Place;
  readonly #checks: HealthChecks;
  readonly #probeSource: string;
  readonly #waiting = new Map<number, (error: string | undefined) => void>();
  #child: Child | undefined;
  #rest = '';
  #orders = 0;
  #hasNetns = false;
  #isClosed = false;
  #rules: ReadonlyMap<string, ProxyRule> = new Map();
  /** What checks found, by rule and `ip:port`. */
  readonly #alive = new Map<string, Map<string, boolean>>();
  #noted: Promise<void> = Promise.resolve();
  readonly #onFound: (found: HealthFound) => void;

  constructor(place: Place, { loadBalancerId, vip }: ProxyTable, onFound: (found: HealthFound) => void) {
    this.#place = place;
    this.vip = vip;
    this.port = `l${place.serial}`;
    this.netns = new NetnsView(`${place.prefix}${loadBalancerId}`);
    this.#probeSource = `100.65.${place.serial >> 8}.${place.serial & 255}`;
    this.#checks = new HealthChecks(this.netns, this.#probeSource, (found) => this.#note(found));
    this.#onFound = onFound;
  }

  /** Makes the namespace and starts the proxy. Called once. @throws Error when the proxy does not start */
  async start(): Promise<void> {
    const { router } = this.#place;
    await run(['ip', 'netns', 'add', this.netns.name]);
    this.#hasNetns = true;
    await run(
      ['ip', 'link', 'add', this.port, 'netns', router.name, 'type', 'veth'].concat([
        'peer',
        'name',
        'eth0',
        'netns',
        this.netns.name,
      ]),
    );
    await router.ipBatch([
      `address add ${GATEWAY}/32 dev ${this.port}`,
      `link set ${this.port} up`,
      ...[this.vip, this.#probeSource].map((ip) => `route replace ${ip}/32 dev ${this.port}`),
    ]);
    await this.netns.ipBatch([
      'link set lo up',
      'link set eth0 up',
      ...[this.vip, this.#probeSource].map((ip) => `address add ${ip}/32 dev eth0`),
      `route add default via ${GATEWAY} dev eth0 onlink src ${this.vip}`,
    ]);
    const script = fileURLToPath(new URL('proxy-process.ts', import.meta.url));
    const started = this.#answerTo(0);
    this.#child = this.netns.start([process.execPath, script], { onStdout: (text) => this.#read(text) });
    await started;
  }

  /**
   * Has requests follow a table, and checks its targets. No connection of a client ends but those of a listener that goes.
   * @throws Error when the proxy refuses it; requests go on as before
   */
  async apply(table: ProxyTable): Promise<void> {
    const rules = new Map(table.listeners.flatMap((listener) => listener.rules).map((rule) => [rule.ruleId, rule]));
    const gone = [...this.#rules.values()].filter(({ ruleId }) => !rules.has(ruleId));
    const before = this.#rules;
    this.#rules = rules;
    try {
      await this.#send({ table, usable: this.#usable() });
    } catch (error) {
      this.#rules = before;
      throw error;
    }
    for (const rule of rules.values()) this.#forgetChecks(rule);
    for (const { ruleId } of gone) this.#alive.delete(ruleId);
    for (const rule of gone) this.#checks.follow({ ...rule, listenerId: rule.ruleId, targets: [] });
    for (const rule of rules.values()) this.#checks.follow({ ...rule, listenerId: rule.ruleId });
  }

  /** Waits until requests follow what the checks have found so far. */
  settled(): Promise<void> {
    return this.#noted;
  }

  /** Ends the proxy and its checks, and removes the namespace. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#checks.close(), this.#child?.stop('SIGKILL')]);
    for (const answer of [...this.#waiting.values()]) answer('the proxy has ended');
    await deleteNetnsNames([this.netns.name].filter(() => this.#hasNetns));
    this.#hasNetns = false;
  }

  /** A target that was deregistered is checked again when it comes again. */
  #forgetChecks({ ruleId, targets }: ProxyRule): void {
    const keys = new Set(targets.map(keyOf));
    this.#alive.set(ruleId, new Map([...(this.#alive.get(ruleId) ?? [])].filter(([key]) => keys.has(key))));
  }

  #note(found: HealthFound): void {
    const alive = this.#alive.get(found.listenerId);
    const isTarget = this.#rules.get(found.listenerId)?.targets.some((target) => keyOf(target) === found.key);
    if (this.#isClosed || alive === undefined || isTarget !== true) return;
    alive.set(found.key, found.isAlive);
    this.#onFound(found);
    this.#noted = this.#send({ usable: this.#usable() }).catch(() => undefined);
  }

  #usable(): Readonly<Record<string, readonly string[]>> {
    const entries = [...this.#rules.values()].map((rule) => {
      return [rule.ruleId, usableTargets(rule, this.#alive.get(rule.ruleId)).map(keyOf)] as const;
    });
    return Object.fromEntries(entries);
  }

  async #send(order: Omit<ProxyOrder, 'order'>): Promise<void> {
    this.#orders += 1;
    const line = JSON.stringify({ order: this.#orders, ...order });
    if (line.length > MOST_BYTES) throw new Error(`${this.netns.name}: a table of ${line.length} bytes is too long`);
    const done = this.#answerTo(this.#orders);
    this.#child?.writeLine(line);
    await done;
  }

  async #answerTo(order: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const late = (): void => resolve(`no answer from the proxy: ${this.#child?.stderr.slice(-1_000)}`);
    const timer = startTimer(late, ORDER_MS);
    this.#waiting.set(order, resolve);
    const error = await promise;
    timer.cancel();
    this.#waiting.delete(order);
    if (error !== undefined) throw new Error(`${this.netns.name}: ${error}`);
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    // What the proxy of this project prints.
    for (const { order, error } of lines.map((line) => JSON.parse(line) as ProxyAnswer))
      this.#waiting.get(order)?.(error);
  }
}

function keyOf({ ip, port }: { readonly ip: string; readonly port: number }): string {
  return `${ip}:${port}`;
}

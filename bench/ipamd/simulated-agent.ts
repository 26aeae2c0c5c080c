import type { Offer } from '../../agent/journal/journal-content.ts';
import { type LeaseKey, leaseKey } from '../../agent/journal/lease.ts';
import { claimKey, type Supply } from '../../agent/journal/supply.ts';
import { IpPool } from '../../agent/pool/ip-pool.ts';
import type { PodIdentity } from '../../agent/pool/lease-static.ts';
import { decidePublication } from '../../agent/supply/decide-publication.ts';
import { GATHER_DEMAND_MS } from '../../agent/supply/may-gather.ts';
import { withAgentFields } from '../../agent/supply/observed-nec.ts';
import type { ObservedNec } from '../../agent/supply/publication.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import { readNec } from './seen-nec.ts';

/** What a simulated agent is. */
type SimulatedAgentOptions = {
  readonly nodeName: string;
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly cooldownMs: number;
  /** Give back all surplus at a time. */
  readonly isQuick: boolean;
  /** How long demand is gathered, milliseconds; default the agent's. */
  readonly gatherMs?: number;
  /** Called when a Pod gets its addresses. */
  readonly onAddress?: (podId: string, ips: readonly string[]) => void;
};

/** How often an agent looks at cooldowns and its pace of giving back. */
const TICK_MS = 5_000;
/** A burst of Pods is one write. */
const DEBOUNCE_MS = 200;
/** While the API server is away. */
const RETRY_MS = 1_000;

/**
 * An agent without a kernel: the product's pool and publication decisions on a NodeENIConfig, for thousands of nodes in
 * one process. It never crashes, so its journal is its memory.
 */
export class SimulatedAgent {
  readonly #options: SimulatedAgentOptions;
  readonly #pool = new IpPool();
  readonly #offers = new Map<string, Offer>();
  /** Pods without an address, by key: since when, of the clock since boot. */
  readonly #waiting = new Map<
    LeaseKey,
    { readonly podId: string; readonly sinceMs: number; readonly kept?: PodIdentity }
  >();
  /** Pods whose address is kept, by key. */
  readonly #kept = new Map<LeaseKey, PodIdentity>();
  #seen: { readonly object: KubeObject; readonly nec: ObservedNec; readonly supply: Supply } | undefined;
  #lastReleaseMs: number;
  #nextReleaseMs: number | undefined;
  #gatheringSinceMs: number | undefined;
  #lastWriteMs: number;
  #isPublishing = false;
  #end: AbortSignal | undefined;
  #isStale = false;
  /** Writes of this agent that the API server took. */
  writes = 0;

  constructor(options: SimulatedAgentOptions) {
    this.#options = options;
    this.#lastReleaseMs = options.clock.bootMs();
    this.#lastWriteMs = this.#lastReleaseMs;
  }

  /** Pods that have an address. */
  get running(): number {
    return this.#pool.state.leases.size;
  }

  /** Pods that wait for one. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Pods that have waited since before that moment, of the clock since boot. */
  waitingSince(bootMs: number): number {
    return [...this.#waiting.values()].filter(({ sinceMs }) => sinceMs < bootMs).length;
  }

  /** Addresses that a Pod could have at once. */
  get free(): number {
    return this.#pool.counts().free;
  }

  /** Addresses that are in use. */
  get addresses(): readonly string[] {
    return [...this.#pool.state.leases.values()].flat();
  }

  /** Addresses that are in use on an ENI. */
  addressesOn(eniId: string): readonly string[] {
    return this.addresses.filter((ip) => this.#pool.state.addresses.get(ip)?.eniId === eniId);
  }

  /** A Pod wants an address, of the pool or the one that is `kept` for its name; it gets it now or when there is one. */
  add(podId: string, kept?: PodIdentity): void {
    const key = leaseKey({ containerId: podId, ifName: 'eth0' });
    if (kept !== undefined) this.#kept.set(key, kept);
    this.#waiting.set(key, {
      podId,
      sinceMs: this.#options.clock.bootMs(),
      ...(kept === undefined ? {} : { kept }),
    });
    this.#serve();
    void this.#publish();
  }

  /** A Pod ends. */
  remove(podId: string): void {
    const key = leaseKey({ containerId: podId, ifName: 'eth0' });
    this.#waiting.delete(key);
    const kept = this.#kept.get(key);
    const named = kept === undefined ? {} : { podKey: claimKey(kept) };
    this.#kept.delete(key);
    this.#pool.release({ key, ...named, nowMs: this.#options.clock.bootMs(), cooldownMs: this.#options.cooldownMs });
    // An address that is kept is free at once, for the next Pod of its name.
    this.#serve();
    void this.#publish();
  }

  /** Takes in the object as a watch or a write brought it. */
  observe(object: KubeObject): void {
    const { nec, supply } = readNec(object);
    const result = this.#pool.applySupply(supply);
    // An old state that was restored is written on all the same, with the epoch that was in force: so ipamd learns of it.
    const inForce = result.kind === 'distrusted' ? this.#seen?.supply : supply;
    const registered = [supply.registeredIps, inForce?.registeredIps].flatMap((ips) => ips ?? []);
    this.#pool.setRegistered((inForce?.registeredIps ?? supply.registeredIps) && new Set(registered));
    if (inForce === undefined) return;
    this.#seen = { object, nec, supply: inForce };
    this.#serve();
    void this.#publish();
  }

  /** Ends cooldowns and gives back what is due, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    this.#end = signal;
    while (!signal.aborted) {
      await clock.sleep(TICK_MS, signal).catch(() => undefined);
      const cooled = this.#pool.tick(clock.bootMs());
      const isPaceDue = this.#nextReleaseMs !== undefined && this.#nextReleaseMs <= clock.bootMs();
      if (cooled.length === 0 && !isPaceDue && this.#gatheringSinceMs === undefined) continue;
      this.#serve();
      await this.#publish();
    }
  }

  #serve(): void {
    const nowMs = this.#options.clock.bootMs();
    for (const [key, { podId, kept: pod }] of this.#waiting) {
      const { kind } =
        pod === undefined
          ? this.#pool.lease({ key, families: [4], nowMs })
          : this.#pool.leaseStatic({ key, pod, families: [4] });
      if (kind !== 'leased') continue;
      this.#waiting.delete(key);
      this.#options.onAddress?.(podId, this.#pool.state.leases.get(key) ?? []);
    }
  }

  async #publish(): Promise<void> {
    this.#isStale = true;
    if (this.#isPublishing) return;
    this.#isPublishing = true;
    try {
      // An API server that is gone for good answers no repetition.
      while (this.#isStale && this.#end?.aborted !== true) {
        await this.#options.clock.sleep(DEBOUNCE_MS);
        this.#isStale = false;
        await this.#write().catch(async (error: unknown) => {
          if (!isKubeError(error, 'UNAVAILABLE', 'TIMEOUT', 'THROTTLED')) throw error;
          await this.#options.clock.sleep(RETRY_MS);
          this.#isStale = true;
        });
      }
    } finally {
      this.#isPublishing = false;
    }
  }

  async #write(): Promise<void> {
    const { clock, kube, isQuick, gatherMs = GATHER_DEMAND_MS } = this.#options;
    const seen = this.#seen;
    if (seen === undefined) return;
    const nowMs = clock.bootMs();
    const publication = decidePublication({
      pool: this.#pool.state,
      offers: this.#offers,
      life: this.#options.nodeName,
      nec: seen.nec,
      warm: seen.supply.warm,
      // What is kept for a Pod is asked for by its claim.
      outside: { waiting: [...this.#waiting.values()].filter(({ kept }) => kept === undefined).length, floor: 0 },
      pacing: { nowMs, lastReleaseMs: this.#lastReleaseMs, isQuick },
      gathering: { forMs: gatherMs, sinceMs: this.#gatheringSinceMs, lastWriteMs: this.#lastWriteMs },
      readyResources: ['tke.cloud.tencent.com/eni-ip'],
    });
    this.#nextReleaseMs = publication.nextReleaseMs;
    this.#gatheringSinceMs = publication.gatheringSinceMs;
    for (const { ip } of publication.toErase) this.#offers.delete(ip);
    if (!publication.isDue) return;
    for (const offer of publication.toOffer) this.#offers.set(offer.ip, offer);
    this.#pool.withdraw(publication.toOffer.map(({ ip }) => ip));
    if (publication.isPaced) this.#lastReleaseMs = nowMs;
    try {
      const changed = withAgentFields(seen.object, publication.spec);
      const written = await kube.update(NODE_ENI_CONFIGS, { ...seen.object, ...changed });
      this.writes += 1;
      this.#gatheringSinceMs = undefined;
      this.#lastWriteMs = nowMs;
      for (const { ip } of publication.toRestore) this.#offers.delete(ip);
      this.#pool.restore(publication.toRestore.map(({ ip }) => ip));
      this.observe(written);
    } catch (error) {
      if (isKubeError(error, 'CONFLICT')) await this.#readAgain();
      else if (!isKubeError(error, 'NOT_FOUND')) throw error;
    }
  }

  async #readAgain(): Promise<void> {
    const object = await this.#options.kube.get(NODE_ENI_CONFIGS, { name: this.#options.nodeName });
    if (object !== undefined) this.observe(object);
  }
}

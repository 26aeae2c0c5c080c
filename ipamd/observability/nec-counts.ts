import { countsOf } from '../../runtime/metrics/metric-table.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { NecChange } from './ready-timer.ts';

/**
 * Counts of all NodeENIConfigs together, kept current by their changes: a scrape reads no object, however many nodes the
 * cluster has. Keys of two parts are joined by a tab.
 */
export class NecCounts {
  /** Subnet and state of the address. */
  readonly addresses = new Tally();
  /** Subnet and state of the ENI; `Draining` takes precedence over the state. */
  readonly enis = new Tally();
  /** Status and reason of the condition Ready; `Unknown` while it does not exist. */
  readonly nodes = new Tally();
  /** Cloud call and phase. */
  readonly intents = new Tally();
  /** Zone of a node that names no subnets of its own. */
  readonly zones = new Tally();
  /** Intents of nodes that have some. */
  readonly #intents = new Map<string, readonly Recorded[]>();

  /** Counts a change of a cached NodeENIConfig. */
  change({ key, before, after }: NecChange): void {
    if (before !== undefined) this.#add(before, -1);
    if (after !== undefined) this.#add(after, 1);
    const intents = after?.decoded?.status?.intents ?? [];
    if (intents.length === 0) this.#intents.delete(key);
    else this.#intents.set(key, intents);
  }

  /** Returns the age of the oldest intent of each cloud call, in milliseconds; `nowMs` is the wall clock, as their times are. */
  intentAgesMs(nowMs: number): ReadonlyMap<string, number> {
    const agesMs = new Map<string, number>();
    for (const { action, recordedAt } of [...this.#intents.values()].flat())
      agesMs.set(action, Math.max(0, nowMs - Date.parse(recordedAt), agesMs.get(action) ?? 0));
    return agesMs;
  }

  #add({ decoded }: NecEntry, by: 1 | -1): void {
    const { spec, status } = decoded ?? {};
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    const reason = decoded === undefined ? UNREADABLE : (ready?.reason ?? '');
    this.nodes.add(`${ready?.status ?? 'Unknown'}\t${reason}`, by);
    const zone = status?.zone ?? '';
    if (zone !== '' && (spec?.subnetIDs ?? []).length === 0) this.zones.add(zone, by);
    for (const { subnetID: subnet = '', draining, state, addresses = [] } of status?.eniInfos ?? []) {
      this.enis.add(`${subnet}\t${draining === true ? 'Draining' : state}`, by);
      const states = countsOf(addresses.map((address) => address.state));
      for (const [one, count] of states) this.addresses.add(`${subnet}\t${one}`, by * count);
    }
    for (const { action, phase } of status?.intents ?? []) this.intents.add(`${action}\t${phase}`, by);
  }
}

const UNREADABLE = 'ObjectInvalid';

type Recorded = { readonly action: string; readonly recordedAt: string };

/** How often each key occurs; a key that does not has no entry. */
class Tally {
  readonly #counts = new Map<string, number>();

  add(key: string, by: number): void {
    const count = (this.#counts.get(key) ?? 0) + by;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }

  entries(): Iterable<readonly [key: string, count: number]> {
    return this.#counts;
  }

  keys(): Iterable<string> {
    return this.#counts.keys();
  }
}

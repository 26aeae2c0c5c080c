import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';

/** Counts of all NodeENIConfigs together; keys are label values joined by a tab. */
export type NecCounts = {
  /** Subnet and state of the address. */
  readonly addresses: ReadonlyMap<string, number>;
  /** Subnet and state of the ENI; `Draining` takes precedence over the state. */
  readonly enis: ReadonlyMap<string, number>;
  /** Status and reason of the condition Ready; `Unknown` while it does not exist. */
  readonly nodes: ReadonlyMap<string, number>;
  /** Cloud call and phase. */
  readonly intents: ReadonlyMap<string, number>;
  /** Age of the oldest intent of each cloud call, in milliseconds. */
  readonly oldestIntentMs: ReadonlyMap<string, number>;
};

/** The part of an object that is counted. */
export type CountedNec = {
  readonly decoded: { readonly spec?: NodeEniConfigSpec; readonly status?: NodeEniConfigStatus } | undefined;
};

const UNREADABLE = 'ObjectInvalid';

/** Counts addresses, ENIs, conditions and intents of nodes; `nowMs` is the wall clock, as the times of intents are. */
export function countNecs(necs: Iterable<CountedNec>, nowMs: number): NecCounts {
  const addresses = new Map<string, number>();
  const enis = new Map<string, number>();
  const nodes = new Map<string, number>();
  const intents = new Map<string, number>();
  const oldestIntentMs = new Map<string, number>();
  for (const { decoded } of necs) {
    const status = decoded?.status;
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    const reason = decoded === undefined ? UNREADABLE : (ready?.reason ?? '');
    count(nodes, `${ready?.status ?? 'Unknown'}\t${reason}`);
    for (const eni of status?.eniInfos ?? []) {
      const subnet = eni.subnetID ?? '';
      count(enis, `${subnet}\t${eni.draining === true ? 'Draining' : eni.state}`);
      for (const address of eni.addresses ?? []) count(addresses, `${subnet}\t${address.state}`);
    }
    for (const { action, phase, recordedAt } of status?.intents ?? []) {
      count(intents, `${action}\t${phase}`);
      const ageMs = Math.max(0, nowMs - Date.parse(recordedAt));
      oldestIntentMs.set(action, Math.max(ageMs, oldestIntentMs.get(action) ?? 0));
    }
  }
  return { addresses, enis, nodes, intents, oldestIntentMs };
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

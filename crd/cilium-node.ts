import { Faults, isRecord } from '../runtime/decode.ts';
import { canonicalIp } from '../runtime/ip-text.ts';
import { recordOf } from '../runtime/json.ts';

/**
 * States of an address that a CiliumNode's agent is asked to return, in `status.ipam.release-ips`.
 * @see Cilium pkg/ipam/option IPMarkForRelease, IPReadyForRelease, IPDoNotRelease, IPReleased
 */
export const RELEASE_STATE = {
  /** The operator asks for the address. */
  marked: 'marked-for-release',
  /** The agent gives it up. */
  ready: 'ready-for-release',
  /** The agent keeps it: it is in use, or not in the pool. */
  refused: 'do-not-release',
  /** The operator has taken it out of the pool. */
  released: 'released',
} as const;

/** One of the {@link RELEASE_STATE}s. */
export type ReleaseState = (typeof RELEASE_STATE)[keyof typeof RELEASE_STATE];

/** An entry of `spec.ipam.pool` or `status.ipam.used`. */
export type CiliumAllocation = {
  /** In the pool: the only user that may get the address. In use: who has it, `NAMESPACE/POD`, `router` or `health`. */
  readonly owner?: string;
  /** What the address belongs to, here the id of its ENI. */
  readonly resource?: string;
};

/**
 * Owner in `spec.ipam.pool` that no Pod has: an address with it is given to no Pod, and one that has it keeps it.
 * @see Cilium pkg/ipam/crd.go: an entry with an owner is given to that owner alone
 */
export const NO_OWNER = 'no-eni';

/** By address in its shortest form, in the order of the object. */
export type CiliumAllocations = ReadonlyMap<string, CiliumAllocation>;

/** The fields of a CiliumNode that IPAM mode `crd` uses. */
export type CiliumNodeIpam = {
  readonly pool: CiliumAllocations;
  /** Addresses that the agent waits for at its start. */
  readonly minAllocate: number | undefined;
  /** Free addresses that the node wants. */
  readonly preAllocate: number | undefined;
  /** Free addresses above `preAllocate` that are no excess. */
  readonly maxAboveWatermark: number | undefined;
  readonly used: CiliumAllocations;
  readonly releases: ReadonlyMap<string, ReleaseState>;
  /** `status.ipam.operator-status.error`; '' when there is none. */
  readonly operatorError: string;
};

/** A CiliumNode as it was read, and its faults. What has a fault is left out of `ipam`. */
type ReadCiliumNode = { readonly ipam: CiliumNodeIpam; readonly faults: Faults };

/** Most addresses of one table that are read. No instance type has more; the rest is a fault. */
export const MAX_CILIUM_ADDRESSES = 4_096;

/** Longest owner that is read: a namespace, a slash and the name of a Pod. */
const MAX_OWNER_CHARS = 63 + 1 + 253;
const MAX_RESOURCE_CHARS = 253;
const MAX_ERROR_CHARS = 4_096;
const STATES: readonly unknown[] = Object.values(RELEASE_STATE);

/**
 * Reads a CiliumNode object. Never throws: an entry that is no single address (a CIDR, a host name), or not in
 * the shortest form of one, is a fault of that entry alone.
 * @see Cilium pkg/ipam/types IPAMSpec, IPAMStatus; the same in v1.15 to v1.20
 */
export function readCiliumNode(object: Readonly<Record<string, unknown>>): ReadCiliumNode {
  const faults = new Faults();
  const spec = recordOf(recordOf(object['spec'])['ipam']);
  const status = recordOf(recordOf(object['status'])['ipam']);
  const error = recordOf(status['operator-status'])['error'];
  const count = (key: string): number | undefined => readCount(spec[key], `spec.ipam.${key}`, faults);
  return {
    ipam: {
      pool: readAllocations(spec['pool'], 'spec.ipam.pool', faults),
      minAllocate: count('min-allocate'),
      preAllocate: count('pre-allocate'),
      maxAboveWatermark: count('max-above-watermark'),
      used: readAllocations(status['used'], 'status.ipam.used', faults),
      releases: readTable(status['release-ips'], 'status.ipam.release-ips', faults, readState),
      operatorError: typeof error === 'string' ? error.slice(0, MAX_ERROR_CHARS) : '',
    },
    faults,
  };
}

function readAllocations(value: unknown, path: string, faults: Faults): CiliumAllocations {
  return readTable(value, path, faults, readAllocation);
}

/** Reads one value of a table; undefined when it has a fault. */
type ReadEntry<T> = (value: unknown, path: string, faults: Faults) => T | undefined;

function readTable<T>(value: unknown, path: string, faults: Faults, read: ReadEntry<T>): ReadonlyMap<string, T> {
  const table = new Map<string, T>();
  if (value === undefined || value === null) return table;
  if (!isRecord(value)) {
    faults.add(path, 'an object with addresses as keys', value);
    return table;
  }
  for (const [key, entry] of Object.entries(value)) {
    const place = `${path}.${key}`;
    const ip = canonicalIp(key);
    if (ip === undefined)
      faults.add(place, key.includes('/') ? 'a single address; CIDRs are not served' : 'an IP address', key);
    // A patch names an entry by its key.
    else if (ip !== key) faults.add(place, `the form ${ip}`, key);
    else if (table.size >= MAX_CILIUM_ADDRESSES) {
      faults.add(path, `at most ${MAX_CILIUM_ADDRESSES} addresses`, value);
      break;
    } else {
      const decoded = read(entry, place, faults);
      if (decoded !== undefined) table.set(ip, decoded);
    }
  }
  return table;
}

function readAllocation(value: unknown, path: string, faults: Faults): CiliumAllocation | undefined {
  if (value !== null && !isRecord(value)) {
    faults.add(path, 'an object with owner and resource', value);
    return undefined;
  }
  const { owner, resource } = recordOf(value);
  return {
    ...textField('owner', owner, MAX_OWNER_CHARS, path, faults),
    ...textField('resource', resource, MAX_RESOURCE_CHARS, path, faults),
  };
}

function textField(name: 'owner' | 'resource', value: unknown, maxChars: number, path: string, faults: Faults) {
  // Go writes an empty text where there is none.
  if (value === undefined || value === '') return {};
  if (typeof value === 'string' && value.length <= maxChars) return { [name]: value };
  faults.add(`${path}.${name}`, `a text of at most ${maxChars} characters`, value);
  return {};
}

function readState(value: unknown, path: string, faults: Faults): ReleaseState | undefined {
  if (isReleaseState(value)) return value;
  faults.add(path, STATES.join(' or '), value);
  return undefined;
}

function isReleaseState(value: unknown): value is ReleaseState {
  return STATES.includes(value);
}

function readCount(value: unknown, path: string, faults: Faults): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_CILIUM_ADDRESSES) return value;
  faults.add(path, `a whole number from 0 to ${MAX_CILIUM_ADDRESSES}`, value);
  return undefined;
}

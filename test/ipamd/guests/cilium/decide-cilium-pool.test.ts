import test from 'ava';
import type { CiliumAllocation, CiliumNodeIpam, ReleaseState } from '../../../../crd/cilium-node.ts';
import {
  type CiliumPoolDecision,
  type CiliumPoolView,
  ciliumPoolOf,
  decideCiliumPool,
} from '../../../../ipamd/guests/cilium/decide-cilium-pool.ts';
import type { SuppliedIp } from '../../../../ipamd/guests/cilium/find-supplied-ips.ts';

/** Addresses 10.0.0.1 and on, ten on each ENI. */
function supplyOf(count: number, change: (index: number) => Partial<SuppliedIp> = () => ({})): readonly SuppliedIp[] {
  return Array.from({ length: count }, (_, index) => ({
    ip: ipOf(index),
    eniId: `eni-${Math.floor(index / 10)}`,
    assignmentId: `a${index}`,
    isAssigned: true,
    isDraining: false,
    isLeaving: false,
    ...change(index),
  }));
}

function ipOf(index: number): string {
  return `10.0.0.${index + 1}`;
}

function ipsOf(from: number, to: number): readonly string[] {
  return Array.from({ length: to - from }, (_, index) => ipOf(from + index));
}

type Case = {
  readonly supply?: readonly SuppliedIp[];
  /** How many of the first addresses are in use. */
  readonly used?: number;
  readonly ipam?: Partial<CiliumNodeIpam>;
  readonly view?: Partial<CiliumPoolView>;
};

function viewOf({ supply = supplyOf(10), used = 2, ipam = {}, view = {} }: Case): CiliumPoolView {
  const table = (ips: readonly string[]) => new Map(ips.map((ip): [string, CiliumAllocation] => [ip, {}]));
  return {
    ipam: {
      pool: table(supply.map(({ ip }) => ip)),
      minAllocate: undefined,
      preAllocate: undefined,
      maxAboveWatermark: undefined,
      used: table(ipsOf(0, used)),
      releases: new Map<string, ReleaseState>(),
      operatorError: '',
      ...ipam,
    },
    supply,
    offered: new Map(),
    podIps: new Map(),
    podKeys: new Set(),
    registered: new Set(),
    elsewhere: new Set(),
    warm: { min: 5, max: 5 },
    floor: 0,
    ...view,
  };
}

const MARKED = 'marked-for-release';

const CASES: Readonly<Record<string, Case & { readonly want: Partial<CiliumPoolDecision> }>> = {
  'users and the warm minimum': { want: { desired: 7, spare: 3, free: 8 } },
  'missing ones': { used: 8, want: { desired: 13, spare: -3, free: 2 } },
  'two more before Cilium has taken its own': { used: 0, want: { desired: 7, spare: 3, free: 10 } },
  'pre-allocate is the number of free ones': { ipam: { preAllocate: 8 }, want: { desired: 10, spare: 0 } },
  'max-above-watermark is no excess': {
    ipam: { preAllocate: 4, maxAboveWatermark: 3 },
    want: { desired: 6, spare: 1 },
  },
  'neither missing nor spare between both': { ipam: { preAllocate: 6, maxAboveWatermark: 3 }, want: { spare: 0 } },
  'the warm maximum counts without pre-allocate': {
    view: { warm: { min: 5, max: 7 } },
    want: { desired: 7, spare: 1 },
  },
  'min-allocate is the least': { ipam: { minAllocate: 12 }, want: { desired: 12, spare: -2 } },
  'a Pod counts before it is in used': { view: { podIps: new Map([[ipOf(5), 'a/b']]) }, want: { desired: 8, free: 7 } },
  'the floor of the node is kept': { view: { floor: 9 }, want: { desired: 7, spare: 1 } },
  'what is being given up is not free': {
    ipam: { releases: new Map([[ipOf(9), MARKED]]) },
    want: { desired: 7, spare: 2, free: 7 },
  },
  'what is being given up is replaced when no other is free': {
    used: 8,
    ipam: { releases: new Map(ipsOf(8, 10).map((ip) => [ip, MARKED])) },
    want: { desired: 15, spare: -5, free: 0 },
  },
  'addresses of an ENI that drains are not counted': {
    supply: supplyOf(20, (index) => ({ isDraining: index >= 10 })),
    want: { desired: 7, spare: 3, free: 8 },
  },
  'static addresses are not counted': {
    supply: supplyOf(10, (index) => (index === 9 ? { owner: 'shop/db-0' } : {})),
    want: { desired: 7, spare: 2, free: 7 },
  },
  'neither are addresses that are being taken off': {
    supply: supplyOf(10, (index) => ({ isAssigned: index < 9 })),
    want: { spare: 2, free: 7 },
  },
  'an address that another pool has is held back': {
    ipam: { pool: new Map() },
    view: { elsewhere: new Set([ipOf(3)]) },
    want: { held: [ipOf(3)], free: 7, desired: 2 + 5 + 1 },
  },
  'it stays where it is in both pools': { view: { elsewhere: new Set([ipOf(3)]) }, want: { held: [], free: 8 } },
  'what is on no ENI is a stray': {
    supply: supplyOf(9),
    ipam: { pool: new Map([[ipOf(11), {}]]) },
    want: { strays: [ipOf(11)] },
  },
};

for (const [title, { want, ...given }] of Object.entries(CASES)) {
  test(`decideCiliumPool: ${title}`, (t) => {
    const decided = decideCiliumPool(viewOf(given));
    t.deepEqual({ ...decided, ...want }, decided);
  });
}

test('decideCiliumPool: what has to go comes first, then the ENI with fewest users', (t) => {
  const supply = supplyOf(30, (index) => (index === 25 ? { isLeaving: true, owner: 'shop/db-0' } : {}));
  const { addresses } = decideCiliumPool(viewOf({ supply, used: 12 }));
  t.is(addresses[0]?.ip, ipOf(25));
  t.true(addresses[0]?.mustGo);
  t.is(addresses[1]?.ip, ipOf(20));
  t.deepEqual(
    addresses
      .slice(-10)
      .map(({ ip }) => ip)
      .sort(),
    [...ipsOf(0, 10)].sort(),
  );
});

test('decideCiliumPool: a static address stays, and so does a target of a load balancer', (t) => {
  const supply = supplyOf(10, (index) => (index === 9 ? { owner: 'shop/db-0' } : {}));
  const { addresses } = decideCiliumPool(viewOf({ supply, view: { registered: new Set([ipOf(8)]) } }));
  t.deepEqual(
    addresses
      .filter(({ mustStay }) => mustStay)
      .map(({ ip }) => ip)
      .sort(),
    [ipOf(8), ipOf(9)].sort(),
  );
});

test('decideCiliumPool: an offer of an earlier assignment is none', (t) => {
  const offered = new Map([
    [ipOf(4), 'a4'],
    [ipOf(5), 'older'],
  ]);
  const { addresses } = decideCiliumPool(viewOf({ view: { offered } }));
  t.deepEqual(
    addresses.filter(({ isOffered }) => isOffered).map(({ ip }) => ip),
    [ipOf(4)],
  );
});

const NO_PINS: ReadonlyMap<string, string> = new Map();

test('ciliumPoolOf: the ENI is the resource, and the Pod of a static address the owner', (t) => {
  const supply = supplyOf(2, (index) => (index === 1 ? { owner: 'shop/db-0' } : {}));
  const pool = ciliumPoolOf(viewOf({ supply }), { pool: new Set(ipsOf(0, 2)), pins: NO_PINS });
  t.deepEqual([...pool.values()], [{ resource: 'eni-0' }, { owner: 'shop/db-0', resource: 'eni-0' }]);
});

test('ciliumPoolOf: a pin is cleared only after its Pod is gone', (t) => {
  const ipam = { pool: new Map([[ipOf(0), { owner: 'shop/db-0' }]]) };
  const ownerWith = (podKeys: ReadonlySet<string>, pins = NO_PINS) =>
    ciliumPoolOf(viewOf({ ipam, view: { podKeys } }), { pool: new Set([ipOf(0)]), pins }).get(ipOf(0))?.owner;
  t.is(ownerWith(new Set(['shop/db-0'])), 'shop/db-0');
  t.is(ownerWith(new Set(['shop/db-1'])), undefined);
  t.is(ownerWith(new Set(['shop/db-1']), new Map([[ipOf(0), 'shop/db-1']])), 'shop/db-1');
});

test('ciliumPoolOf: an entry in use of an address that is on no ENI stays as it is', (t) => {
  const entry = { owner: 'someone', resource: 'eni-other' };
  const view = viewOf({ supply: [], ipam: { pool: new Map([[ipOf(0), entry]]) } });
  t.deepEqual(ciliumPoolOf(view, { pool: new Set([ipOf(0)]), pins: NO_PINS }).get(ipOf(0)), entry);
});

test('ciliumPoolOf: an address that is on no ENI, or is being taken off, and that nobody has, is for no Pod', (t) => {
  const ownersOf = (supply: readonly SuppliedIp[]) => {
    const ipam = { pool: new Map(ipsOf(0, 4).map((ip) => [ip, { resource: 'eni-0' }])) };
    const view = viewOf({ supply, used: 1, ipam, view: { podIps: new Map([[ipOf(1), 'shop/a']]) } });
    const pool = ciliumPoolOf(view, { pool: new Set(ipsOf(0, 4)), pins: NO_PINS });
    return [...pool.values()].map(({ owner }) => owner);
  };
  t.deepEqual(ownersOf([]), [undefined, undefined, 'no-eni', 'no-eni']);
  t.deepEqual(ownersOf(supplyOf(4, () => ({ isAssigned: false }))), [undefined, undefined, 'no-eni', 'no-eni']);
  t.deepEqual(ownersOf(supplyOf(4)), [undefined, undefined, undefined, undefined]);
});

test('ciliumPoolOf: on an ENI again, an address is for any Pod', (t) => {
  const ipam = { pool: new Map([[ipOf(5), { owner: 'no-eni', resource: 'eni-0' }]]) };
  const pool = ciliumPoolOf(viewOf({ ipam }), { pool: new Set([ipOf(5)]), pins: NO_PINS });
  t.deepEqual([...pool.values()], [{ resource: 'eni-0' }]);
});

test("ciliumPoolOf: an address that joins while a Pod has it is that Pod's, and one that was there before is not pinned", (t) => {
  const view = { podIps: new Map(ipsOf(5, 7).map((ip) => [ip, 'shop/a'])), podKeys: new Set(['shop/a']) };
  const ipam = { pool: new Map([[ipOf(6), {}]]) };
  const pool = ciliumPoolOf(viewOf({ ipam, view }), { pool: new Set(ipsOf(5, 7)), pins: NO_PINS });
  t.deepEqual([...pool.values()], [{ owner: 'shop/a', resource: 'eni-0' }, { resource: 'eni-0' }]);
});

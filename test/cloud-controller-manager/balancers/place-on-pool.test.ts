import test from 'ava';
import { listenerPortOf, placeOnPool } from '../../../cloud-controller-manager/balancers/place-on-pool.ts';
import type { ListenerKey } from '../../../cloud-controller-manager/balancers/target-place.ts';

const HTTP = [{ protocol: 'TCP', port: 80 }] as const;
const DNS = [
  { protocol: 'TCP', port: 53 },
  { protocol: 'UDP', port: 53 },
] as const;

function member(loadBalancerId: string, ...taken: readonly ListenerKey[]) {
  return { loadBalancerId, taken: new Set(taken) };
}

test('placeOnPool: a port that is kept goes where it is free, and to the fullest first', (t) => {
  const members = [member('lb-1'), member('lb-2', 'TCP/80'), member('lb-3', 'TCP/443', 'UDP/80')];
  t.is(placeOnPool({ listeners: HTTP, allots: false }, members, 50)?.loadBalancerId, 'lb-3');
  t.is(placeOnPool({ listeners: HTTP, allots: false }, [member('lb-2', 'TCP/80')], 50), undefined);
  t.is(placeOnPool({ listeners: HTTP, allots: false }, members, 2)?.loadBalancerId, 'lb-1');
});

test('placeOnPool: allotted ports are free ones, TCP and UDP of a port have one number', (t) => {
  const placed = placeOnPool({ listeners: DNS, allots: true }, [member('lb-1', 'TCP/10000', 'UDP/10001')], 50);
  t.deepEqual(
    [...(placed?.ports ?? [])],
    [
      ['TCP/53', 10_002],
      ['UDP/53', 10_002],
    ],
  );
  t.is(listenerPortOf(placed?.ports, 'UDP', 53), 10_002);
  t.is(listenerPortOf(undefined, 'UDP', 53), 53);
});

test('placeOnPool: what was given stays', (t) => {
  const given = new Map([['TCP/80', 12_345] as const]);
  const listeners = [...HTTP, { protocol: 'TCP' as const, port: 81 }];
  const placed = placeOnPool({ listeners, allots: true, given }, [member('lb-1', 'TCP/10000')], 50);
  t.deepEqual(
    [...(placed?.ports ?? [])],
    [
      ['TCP/80', 12_345],
      ['TCP/81', 10_001],
    ],
  );
});

test('placeOnPool: 1,000 Services of one port fit on 20 load balancers of 50 listeners, each port once', (t) => {
  const members = new Map<string, Set<ListenerKey>>();
  for (let service = 0; service < 1_000; service++) {
    const list = () => [...members].map(([loadBalancerId, taken]) => ({ loadBalancerId, taken }));
    let placed = placeOnPool({ listeners: HTTP, allots: true }, list(), 50);
    if (placed === undefined) {
      members.set(`lb-${members.size}`, new Set());
      placed = placeOnPool({ listeners: HTTP, allots: true }, list(), 50);
    }
    const taken = members.get(placed?.loadBalancerId ?? '');
    const key = `TCP/${listenerPortOf(placed?.ports, 'TCP', 80)}` as const;
    t.false(taken?.has(key) ?? true, key);
    taken?.add(key);
  }
  t.is(members.size, 20);
  t.true([...members.values()].every((taken) => taken.size === 50));
});

import test from 'ava';
import { countNodesByZone } from '../../../ipamd/observability/count-nodes-by-zone.ts';

const [Z3, Z4, Z6] = ['ap-guangzhou-3', 'ap-guangzhou-4', 'ap-guangzhou-6'] as const;

function subnet(zone: string, freeIps: number, isBlocked = false) {
  return { zone, freeIps, isBlocked };
}

test('countNodesByZone: sums the subnets of a zone, each with whole nodes', (t) => {
  const counts = countNodesByZone([subnet(Z3, 17), subnet(Z3, 12), subnet(Z4, 5)], [Z3], 5);
  t.deepEqual([...counts].sort(), [
    [Z3, 4],
    [Z4, 0],
  ]);
});

test('countNodesByZone: a zone with nodes and no subnet has 0', (t) => {
  t.deepEqual([...countNodesByZone([], [Z6], 5)], [[Z6, 0]]);
});

test('countNodesByZone: a full subnet has none, whatever its number', (t) => {
  t.deepEqual([...countNodesByZone([subnet(Z3, 60, true), subnet(Z3, 6)], [], 5)], [[Z3, 1]]);
});

test('countNodesByZone: an ENI without warm addresses takes two', (t) => {
  t.deepEqual([...countNodesByZone([subnet(Z3, 5)], [], 0)], [[Z3, 2]]);
});

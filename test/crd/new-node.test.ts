import test from 'ava';
import { countNodeAddresses, countNodesLeft, isOpenToNewNodes } from '../../crd/new-node.ts';

const TAKES: readonly (readonly [maxEnis: number, ipsPerEni: number, warmIps: number, warm: number, full: number])[] = [
  [3, 9, 5, 6, 30],
  [1, 5, 5, 6, 6],
  // An ENI is created with an address for a Pod.
  [3, 9, 0, 2, 30],
  [3, 9, 9, 10, 30],
  // A second ENI takes an address itself.
  [3, 9, 10, 12, 30],
  // No more than the instance may have.
  [2, 5, 400, 12, 12],
];
for (const [maxEnis, ipsPerEni, warmIps, warm, full] of TAKES) {
  test(`countNodeAddresses: ${maxEnis} ENIs of ${ipsPerEni} with ${warmIps} warm take ${warm}, full ${full}`, (t) => {
    t.deepEqual(countNodeAddresses({ maxEnis, ipsPerEni, warmIps }), { warm, full });
  });
}

const LEFT: readonly (readonly [free: readonly number[], takes: number, nodes: number])[] = [
  [[], 6, 0],
  [[5], 6, 0],
  [[6], 6, 1],
  // Both together have 10, and neither has 6.
  [[5, 5], 6, 0],
  [[13, 6, 0], 6, 3],
  [[-3, 6], 6, 1],
];
for (const [free, takes, nodes] of LEFT) {
  test(`countNodesLeft: [${free}] are enough for ${nodes} nodes that take ${takes}`, (t) => {
    t.is(countNodesLeft(free, takes), nodes);
  });
}

test('isOpenToNewNodes: a subnet of the cluster that is neither full nor for those that name it', (t) => {
  t.true(isOpenToNewNodes({ common: true }));
  t.false(isOpenToNewNodes({}));
  t.false(isOpenToNewNodes({ common: true, blocked: true }));
  t.false(isOpenToNewNodes({ common: true, onlyNominated: true }));
});

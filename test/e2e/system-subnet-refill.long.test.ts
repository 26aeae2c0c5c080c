import test from 'ava';
import { NODES } from '../../kube/resource-types.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { countAssigned, createSystem, type SeenNec, type System } from '../system/system.ts';

let system: System;

test.afterEach.always(() => system?.close());

/** The reason of a condition of a NodeENIConfig. */
function reasonOf(nec: SeenNec, type = 'Ready'): string | undefined {
  return nec.status?.conditions?.find((condition) => condition.type === type)?.reason;
}

test.serial('a full subnet is refilled when others give addresses back', async (t) => {
  const small = { subnetId: 'subnet-small000', cidr: '10.0.2.0/28' };
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }], subnets: [small], joinsAll: false });
  await system.join('n1');
  await system.awaitNec('n1', 'warm', (nec) => countAssigned(nec) >= 5);
  await system.join('n2');
  await system.awaitNec('n2', 'some addresses', (nec) => countAssigned(nec) >= 1);
  const node = system.node('n2');
  await node.runPod('p1');
  await node.runPod('p2');
  await system.awaitNec('n2', 'held by the subnet', (nec) => reasonOf(nec) === 'SubnetExhausted');
  await system.cluster.admin.delete(NODES, { name: 'n1' });
  await system.node('n1').killAgent();
  await system.awaitGone('n1');
  await system.awaitNec('n2', 'warm again', (nec) => countAssigned(nec) >= 7, 90_000);
  t.deepEqual(await auditThreeWays(system, { withoutAgent: ['n1'] }), []);
});

import test from 'ava';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { countAssigned, createSystem, type SeenNec, type System } from '../system/system.ts';

let system: System;

test.afterEach.always(() => system?.close());

/** The reason of a condition of a NodeENIConfig. */
function reasonOf(nec: SeenNec, type = 'Ready'): string | undefined {
  return nec.status?.conditions?.find((condition) => condition.type === type)?.reason;
}

async function awaitEvent(reason: string): Promise<string> {
  const event = await waitUntil(() => system.cluster.server.objects('events').find((one) => one['reason'] === reason), {
    what: `event ${reason}`,
    explain: () => system.logs().slice(-3_000),
  });
  return String(event['message']);
}

test.serial('a subnet runs out: names itself; another subnet in the ConfigMap ends it without a restart', async (t) => {
  const small = { subnetId: 'subnet-small000', cidr: '10.0.2.0/28' };
  const spare = { subnetId: 'subnet-spare000', cidr: '10.0.3.0/24' };
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }], subnets: [small, spare], joinsAll: false });
  await system.configure({ TKE_ENI_IPAMD_SUBNET_ID: small.subnetId });
  await Promise.all([system.join('n1'), system.join('n2')]);
  // Thirteen usable: an ENI and its first addresses for each of the two nodes, and one more.
  for (const name of ['n1', 'n2']) await system.node(name).awaitReady();
  const node = system.node('n1');
  const pods = [await node.runPod('p0'), await node.runPod('p1')];
  await system.awaitNec('n1', 'held by the subnet', (nec) => reasonOf(nec) === 'SubnetExhausted');
  t.regex(await awaitEvent('SubnetExhausted'), /subnet-small000|ResourceInsufficient/);
  t.deepEqual(await auditThreeWays(system), []);
  await system.configure({ TKE_ENI_IPAMD_SUBNET_ID: `${small.subnetId}:${spare.subnetId}` });
  for (let index = 2; index < 8; index++) pods.push(await node.runPod(`p${index}`));
  t.true(pods.some((pod) => pod.ip.startsWith('10.0.3.')));
  await system.awaitNec('n1', 'ready again', (nec) => countAssigned(nec) >= 13 && reasonOf(nec) !== 'SubnetExhausted');
  t.deepEqual(await auditThreeWays(system), []);
});

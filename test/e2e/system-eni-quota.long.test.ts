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

test.serial('ENI quota of the VPC: names itself, holds up nobody else, and is over when it is raised', async (t) => {
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }], vpcEnis: 1, joinsAll: false });
  await system.join('n1');
  await system.awaitNec('n1', 'warm', (nec) => countAssigned(nec) >= 5);
  await system.join('n2');
  const held = await system.awaitNec('n2', 'held by the quota', (nec) => reasonOf(nec) === 'ENILimit');
  t.is(countAssigned(held), 0);
  t.regex(await awaitEvent('ENILimit'), /LimitExceeded/);
  const pod = await system.node('n1').runPod('p1');
  await system.awaitNec('n1', 'one more for the Pod', (nec) => countAssigned(nec) >= 6);
  t.deepEqual(await auditThreeWays(system), []);
  system.cloud.host.model.state.vpcEniQuota = 10;
  await system.awaitNec('n2', 'warm', (nec) => countAssigned(nec) >= 5 && reasonOf(nec) !== 'ENILimit', 90_000);
  const other = await system.node('n2').runPod('p2');
  t.true(await pod.sandbox.netns.ping(other.ip));
  t.deepEqual(await auditThreeWays(system), []);
});

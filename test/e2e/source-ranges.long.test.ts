import test from 'ava';
import { SERVICES } from '../../kube/resource-types.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type BalancedSystem, balanceSystem } from '../system/balanced/balanced-system.ts';
import type { WebPod } from '../system/balanced/web-pod.ts';
import { POD_NAMESPACE } from '../system/cluster.ts';
import { createSystem, type System } from '../system/system.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';

// Source ranges in packets: the load balancer drops every other client, and follows when the ranges change.

const ANNOTATIONS = {
  'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': POD_SUBNET.subnetId,
  'service.cloud.tencent.com/direct-access': 'true',
} as const;

type Client = { readonly netns: NetnsView; readonly ip: string };

let system: System;
let cluster: BalancedSystem;
let web: WebPod;

test.before(async (t) => {
  t.timeout(240_000);
  system = await createSystem({
    nodes: [{ name: 'n1' }, { name: 'one' }, { name: 'two' }],
    joinsAll: false,
    ipamds: 1,
  });
  await system.join('n1');
  cluster = await balanceSystem(system, [system.node('n1')]);
  await system.node('n1').awaitReady();
  web = await cluster.serve(await system.node('n1').runPod('web-1', { marks: { labels: { app: 'web' } } }));
});
test.after.always(() => cluster?.close() ?? system?.close());

function clientOf(name: string): Client {
  const { netns, primary } = system.cloud.vpc.node(name);
  return { netns, ip: primary.primaryIp };
}

async function answers({ netns }: Client, vip: string): Promise<boolean> {
  const argv = ['curl', '--silent', '--output', '/dev/null', '--max-time', '2', `http://${vip}/`];
  return (await netns.tryRun(argv)).code === 0;
}

async function setRanges(loadBalancerSourceRanges: readonly string[]): Promise<void> {
  const body = { spec: { loadBalancerSourceRanges } };
  await system.cluster.admin.patch(SERVICES, { namespace: POD_NAMESPACE, name: 'web' }, { kind: 'merge', body });
}

/** The security groups that were made, and whom they admit. */
function groups(): readonly string[] {
  const { securityGroups } = system.cloud.host.model.state;
  return [...securityGroups.made.keys()].map((id) =>
    securityGroups
      .rulesOf([id])
      .map(({ protocol, port, cidr }) => `${protocol} ${port} ${cidr}`)
      .join(),
  );
}

test.serial('a client of the source ranges reaches the Pod, and no other one does', async (t) => {
  t.timeout(180_000);
  const [one, two] = [clientOf('one'), clientOf('two')];
  const vip = await cluster.balance({
    name: 'web',
    annotations: ANNOTATIONS,
    spec: { loadBalancerSourceRanges: [`${one.ip}/32`] },
  });
  await cluster.awaitAnswer(one.netns, vip);
  t.deepEqual(groups(), [`TCP 80 ${one.ip}/32`]);
  t.false(await answers(two, vip));
  t.true(web.clients().length > 0 && web.clients().every((ip) => ip === one.ip));

  await setRanges([`${two.ip}/32`]);
  await cluster.awaitAnswer(two.netns, vip);
  t.false(await answers(one, vip));
  t.deepEqual(groups(), [`TCP 80 ${two.ip}/32`]);

  await setRanges([]);
  await cluster.awaitAnswer(one.netns, vip);
  t.true(await answers(two, vip));
  const isGone = async () => groups().length === 0;
  await waitUntil(isGone, {
    what: 'no security group',
    timeoutMs: 60_000,
    everyMs: 200,
    explain: () => cluster.logs(),
  });
});

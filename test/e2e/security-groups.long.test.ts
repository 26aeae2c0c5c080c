import test from 'ava';
import { buildLbRows } from '../../cli/commands/lb/build-lb-rows.ts';
import { readLbFacts } from '../../cli/commands/lb/read-lb-facts.ts';
import type { CallContext } from '../../cloud/cloud.ts';
import { createTencentCloud } from '../../cloud/tencent/tencent-cloud.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import { createInProcessApi } from '../../sim/vpc/api/in-process.ts';
import type { SecurityRule } from '../../sim/vpc/api/model/security-group-book.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type BalancedSystem, balanceSystem } from '../system/balanced/balanced-system.ts';
import type { WebPod } from '../system/balanced/web-pod.ts';
import { createSystem, type System } from '../system/system.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';

// Security groups in packets, at the load balancer, at ENIs and at nodes: which of them keeps probes or clients out, and that
// `tke-eni lb` names it.

const INTERNAL = { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': POD_SUBNET.subnetId } as const;
const DIRECT = { ...INTERNAL, 'service.cloud.tencent.com/direct-access': 'true' } as const;
/** Groups of ENIs for Pods, of nodes (the default one), and of load balancers. */
const [PODS, NODES, BALANCERS] = ['sg-pods0000', 'sg-default0', 'sg-clb00000'];
const PROBES: SecurityRule = { cidr: '100.64.0.0/10', isAccepted: true };
const EVERYONE: SecurityRule = { cidr: '0.0.0.0/0', isAccepted: true };
const PERSON: CallContext = { priority: 'warm', owner: 'person', signal: new AbortController().signal };

let system: System;
let cluster: BalancedSystem;
let client: { readonly netns: NetnsView; readonly ip: string };
let web: WebPod;

test.before(async (t) => {
  t.timeout(240_000);
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'other' }], joinsAll: false, ipamds: 1 });
  await system.join('n1');
  cluster = await balanceSystem(system, [system.node('n1')]);
  const { netns, primary } = system.cloud.vpc.node('other');
  client = { netns, ip: primary.primaryIp };
  await system.node('n1').awaitReady();
  web = await cluster.serve(await system.node('n1').runPod('web-1', { marks: { labels: { app: 'web' } } }));
  const { cloud } = person();
  const { model } = system.cloud.host;
  for (const { eniId, isPrimary } of [...model.state.enis.values()])
    if (!isPrimary) await cloud.securityGroups.replace(eniId, [PODS], PERSON);
});
test.after.always(() => cluster?.close() ?? system?.close());

function person() {
  return {
    cloud: createTencentCloud({ api: createInProcessApi(system.cloud.host), clock: systemClock, random: () => 0.5 }),
  };
}

/** Sets the rules of a group; packets follow. */
async function setRules(group: string, rules: readonly SecurityRule[]): Promise<void> {
  system.cloud.host.model.state.setSecurityRules(group, rules);
  await system.cloud.host.catchUp();
}

const answers = async (host: string): Promise<boolean> =>
  (await client.netns.tryRun(['curl', '--silent', '--output', '/dev/null', '--max-time', '2', `http://${host}/`]))
    .code === 0;

/** The row of a Service, as `tke-eni lb --from CLIENT` has it. */
async function rowOf(service: string, from?: string) {
  const { cloud } = person();
  const args = {
    ...({
      output: 'table',
      plan: false,
      'load-balancer-class': '',
      'cluster-id': undefined,
      'vpc-id': undefined,
    } as const),
    ...{ region: undefined, endpoint: undefined, what: undefined, from },
  };
  const read = async <T>(query: (one: typeof cloud, call: CallContext) => Promise<T>) => await query(cloud, PERSON);
  const progress = { show: () => undefined };
  const openCloud = async () => ({ read });
  const facts = await readLbFacts(args, { client: system.cluster.admin, openCloud, signal: PERSON.signal, progress });
  return buildLbRows(facts, from).find((row) => row.service === `default/${service}`);
}

async function problemsOf(service: string, from?: string): Promise<string> {
  return (await rowOf(service, from))?.problems.join('\n') ?? '';
}

const awaitHealth = (service: string, wanted: string) =>
  waitUntil(
    async () => {
      const targets = (await rowOf(service))?.listeners.flatMap((listener) => listener.targets) ?? [];
      return targets.length > 0 && targets.every(({ health }) => health === wanted);
    },
    { what: `${service} ${wanted}`, timeoutMs: 60_000, everyMs: 200, explain: () => cluster.logs() },
  );

test.serial('an ENI whose group does not admit probes: unhealthy, named, and well with the rule', async (t) => {
  t.timeout(180_000);
  const vip = await cluster.balance({ name: 'web', annotations: DIRECT });
  await cluster.awaitAnswer(client.netns, vip);
  await awaitHealth('web', 'healthy');
  t.is(await problemsOf('web', client.ip), '', 'open by default');
  await setRules(PODS, [{ cidr: '10.0.0.0/16', isAccepted: true }]);
  await awaitHealth('web', 'unhealthy');
  const row = await rowOf('web', client.ip);
  const port = row?.listeners[0]?.targets[0]?.port;
  t.regex(
    row?.problems.join() ?? '',
    new RegExp(
      `TCP/80: security group ${PODS} of eni-\\w+ does not admit the health checks from 100.64.0.0/10 to TCP ${port}; add to ${PODS}: inbound ACCEPT TCP:${port} from 100.64.0.0/10`,
    ),
  );
  t.notRegex(row?.problems.join() ?? '', /the client/);
  t.is(row?.listeners[0]?.targets[0]?.reason, `its check fails: ${PODS} does not admit it`);
  await setRules(PODS, [
    { cidr: '10.0.0.0/16', isAccepted: true },
    { ...PROBES, protocol: 'TCP', port: port ?? 0 },
  ]);
  await awaitHealth('web', 'healthy');
  t.is(await problemsOf('web', client.ip), '');
  t.true(await answers(vip));
});

test.serial(
  'an ENI whose group does not admit the client: it hangs, is named, and is served with the rule or past it',
  async (t) => {
    t.timeout(180_000);
    const service = await cluster.service('web');
    const vip = JSON.stringify(service?.['status']).match(/"ip":"([\d.]+)"/)?.[1] ?? '';
    await setRules(PODS, [PROBES]);
    t.false(await answers(vip));
    await awaitHealth('web', 'healthy');
    t.regex(await problemsOf('web'), new RegExp(`security group ${PODS} of eni-\\w+ admits no client to TCP`));
    const found = new RegExp(
      `${PODS} of eni-\\w+ does not admit the client ${client.ip} to TCP (\\d+); add to ${PODS}: inbound ACCEPT`,
    );
    t.regex(await problemsOf('web', client.ip), found);
    await setRules(PODS, [PROBES, { cidr: `${client.ip}/32`, isAccepted: true }]);
    t.true(await answers(vip));
    t.is(await problemsOf('web', client.ip), '');
    await setRules(PODS, []);
    await awaitHealth('web', 'unhealthy');
    const { cloud } = person();
    const [balancer] = system.cloud.host.model.state.clb.balancers().values();
    const task = await cloud.loadBalancers.modify(balancer?.loadBalancerId ?? '', { passesToTarget: true }, PERSON);
    await cloud.loadBalancers.settle(task, PERSON);
    await awaitHealth('web', 'healthy');
    t.true(await answers(vip), 'the groups of targets are not asked');
    t.is(await problemsOf('web', client.ip), '');
    t.true(web.clients().every((ip) => ip === client.ip));
  },
);

test.serial('a load balancer and a node whose groups do not admit the client', async (t) => {
  t.timeout(180_000);
  const annotations = { ...INTERNAL, 'service.cloud.tencent.com/security-groups': BALANCERS };
  const vip = await cluster.balance({ name: 'by-node', app: 'web', annotations });
  await cluster.awaitAnswer(client.netns, vip);
  await setRules(BALANCERS, [{ cidr: '203.0.113.0/24', isAccepted: true }]);
  t.false(await answers(vip));
  t.regex(
    await problemsOf('by-node', client.ip),
    new RegExp(`TCP/80: security group ${BALANCERS} of lb-\\w+ does not admit the client ${client.ip} to TCP 80; add`),
  );
  await setRules(BALANCERS, [EVERYONE]);
  t.true(await answers(vip));
  await setRules(NODES, [{ ...PROBES, isAccepted: false }, EVERYONE]);
  await awaitHealth('by-node', 'unhealthy');
  t.regex(
    await problemsOf('by-node'),
    new RegExp(
      `${NODES} of eni-\\w+ does not admit the health checks from 100.64.0.0/10 to TCP \\d+; .* before its rule 1, which drops it`,
    ),
  );
  await setRules(NODES, [EVERYONE]);
  await awaitHealth('by-node', 'healthy');
  t.is(await problemsOf('by-node', client.ip), '');
  t.true(await answers(vip));
});

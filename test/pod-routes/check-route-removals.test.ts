import test from 'ava';
import { classifyError } from '../../cloud/classify-error.ts';
import type { IpUser } from '../../cloud/cloud.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { RouteRemovalCheck } from '../../pod-routes/check-route-removals.ts';
import type { RouteRemoval } from '../../pod-routes/decide-routes.ts';
import type { VpcFault } from '../../pod-routes/routes-elsewhere.ts';
import { silentLogger } from '../../runtime/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const HOUR_MS = 3_600_000;
const LIVE = '10.0.0.200';
const CONTEXT = { priority: 'warm' as const, owner: 'routes', signal: new AbortController().signal };

const goneOf = (count: number): readonly RouteRemoval[] =>
  Array.from({ length: count }, (_, index) => ({
    route: { routeId: `gr-${index}`, cidr: `172.16.${index}.0/24`, gatewayIp: `10.0.0.${index}`, description: '' },
    why: 'gone' as const,
  }));

/** A cloud in which these addresses are used, or one that does not tell; an API server in which these Nodes are. */
function openCheck(used: readonly string[] | 'error', nodes: readonly string[] = []) {
  const clock = new VirtualClock();
  const reads: string[] = [];
  const asked: number[] = [];
  const usersOf = async (_vpcId: string, ips: readonly string[]): Promise<readonly IpUser[]> => {
    asked.push(ips.length);
    if (used === 'error')
      throw classifyError({ code: 'UnauthorizedOperation', action: 'DescribeUsedIpAddress', text: '' });
    const found = ips.filter((ip) => used.includes(ip));
    return found.map((ip) => ({ ip, subnetId: 'subnet-a', resourceType: 'CVM', resourceId: 'ins-a' }));
  };
  const get = async (_type: unknown, { name }: { readonly name: string }): Promise<KubeObject | undefined> => {
    reads.push(name);
    return nodes.includes(name) ? { apiVersion: 'v1', kind: 'Node', metadata: { name } } : undefined;
  };
  const check = new RouteRemovalCheck({ subnets: { usersOf }, kube: { get }, clock, log: silentLogger, percent: 10 });
  const run = async (removals: readonly RouteRemoval[], nodeCount = 5, vpcFault?: VpcFault) => {
    const routeCount = removals.length + 5;
    const lastNodeOf = (cidr: string): string => `n${cidr.split('.')[2]}`;
    const facts = { vpcId: 'vpc-a', vpcFault, removals, routeCount, nodeCount, liveIp: LIVE, lastNodeOf };
    const { allowed, held } = await check.check(facts, CONTEXT);
    return { allowed: allowed.length, held: new Set(held.map(({ why }) => why)) };
  };
  return { clock, run, reads, asked };
}

test('RouteRemovalCheck: routes to addresses that nothing has go at once, a hundred asked for a call', async (t) => {
  const { run, reads, asked } = openCheck([LIVE]);
  t.deepEqual(await run(goneOf(150)), { allowed: 150, held: new Set() });
  t.deepEqual(asked, [100, 52]);
  t.deepEqual(reads, []);
});

test('RouteRemovalCheck: while the VPC is a wrong one, its answer is none, and no route goes as its node is gone', async (t) => {
  const { run, reads, asked } = openCheck([LIVE]);
  const verdict = await run(goneOf(3), 5, { actualId: 'vpc-b', message: 'it is vpc-b' });
  t.deepEqual(verdict, { allowed: 0, held: new Set(['it is vpc-b']) });
  t.deepEqual([reads, asked], [[], []]);
});

test('RouteRemovalCheck: a cloud that lists nothing, or does not answer, proves nothing: a share goes per hour', async (t) => {
  for (const used of [[], 'error'] as const) {
    const { clock, run, reads } = openCheck(used);
    const first = await run(goneOf(20));
    t.is(first.allowed, 3);
    t.regex([...first.held].join(), /3 nodes were released within an hour/);
    t.deepEqual(reads, ['n0', 'n1', 'n2'], 'no more Nodes are read than may go');
    t.is((await run(goneOf(20))).allowed, 3, 'the same ones, whose call may have failed');
    await clock.advance(HOUR_MS);
    t.is((await run(goneOf(20).slice(3))).allowed, 3);
  }
});

test('RouteRemovalCheck: one Node that a read finds holds back all of that kind', async (t) => {
  const { run, reads } = openCheck([LIVE, ...goneOf(20).map(({ route }) => route.gatewayIp)], ['n1']);
  const { allowed, held } = await run(goneOf(20));
  t.is(allowed, 1, 'what was read before');
  t.deepEqual(held, new Set(['the API server finds the Node, and its lists lack it']));
  t.deepEqual(reads, ['n0', 'n1']);
});

test('RouteRemovalCheck: without any Node none goes, whatever the cloud says; what its own Node contradicts goes', async (t) => {
  const { run, asked } = openCheck([LIVE]);
  const moved = { ...goneOf(1)[0], why: 'moved' as const } as RouteRemoval;
  const { allowed, held } = await run([...goneOf(4), moved], 0);
  t.is(allowed, 1);
  t.deepEqual(held, new Set(['the API server has no Node at all']));
  t.deepEqual(asked, []);
});

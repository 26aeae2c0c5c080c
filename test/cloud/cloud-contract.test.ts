/** The port's contract: the same cases over HTTP through the SDK, and in process on a virtual clock. */
import test, { type ExecutionContext } from 'ava';
import { batchesOf } from '../../cloud/batches.ts';
import type { IngressRule, RouteKind } from '../../cloud/cloud.ts';
import type { CloudError } from '../../cloud/cloud-error.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import {
  attachedEni,
  type Binding,
  contextOf,
  createdEni,
  inProcess,
  overHttp,
  SPEC,
  type TestCloud,
} from './cloud-fixture.ts';

type Case = { readonly title: string; readonly run: (t: ExecutionContext, on: TestCloud) => Promise<void> };

const CASES: readonly Case[] = [
  {
    title: 'instances.describe: tells size and place, and leaves out what does not exist',
    run: async (t, { cloud }) => {
      const found = await cloud.instances.describe(['ins-cores008', 'ins-missing0'], contextOf());
      t.is(found.length, 1);
      t.like(found[0], { instanceId: 'ins-cores008', cores: 8, zone: 'ap-guangzhou-3', state: 'RUNNING' });
      t.is(found[0]?.privateIps.length, 1);
    },
  },
  {
    title: 'instances.describe: tells what a Node has of it',
    run: async (t, { cloud, host }) => {
      const more = { publicIps: ['203.0.113.7'], ipv6s: ['fd00:8::7'], memoryGib: 16 };
      const added = host.model.state.addInstance({
        instanceId: 'ins-whole001',
        cores: 4,
        subnetId: 'subnet-large000',
        ...more,
      });
      added.restrictState = 'EXPIRED';
      const found = await cloud.instances.describeAlone(['ins-whole001', 'ins-missing0'], contextOf());
      t.is(found.length, 1);
      t.like(found[0], { ...more, restrictState: 'EXPIRED' });
    },
  },
  {
    title: 'instances.findByPrivateIps: finds by the address of the primary ENI in the VPC, five addresses a request',
    run: async (t, { cloud, host }) => {
      const known = await cloud.instances.describe(['ins-cores002', 'ins-cores008'], contextOf());
      const ips = known.flatMap(({ privateIps }) => privateIps);
      const others = ['10.0.9.1', '10.0.9.2', '10.0.9.3', '10.0.9.4'];
      host.forget();
      const find = (vpcId: string, wanted: readonly string[]) =>
        cloud.instances.findByPrivateIps(vpcId, wanted, contextOf());
      const [both, one] = await Promise.all([find(SPEC.vpcId, [...ips, ...others]), find(SPEC.vpcId, ips.slice(0, 1))]);
      t.deepEqual(both.map(({ instanceId }) => instanceId).sort(), ['ins-cores002', 'ins-cores008']);
      t.deepEqual(one, known.slice(0, 1));
      t.deepEqual(host.counts(), { DescribeInstances: 2 });
      t.deepEqual(await find('vpc-other000', ips), []);
    },
  },
  {
    title: 'instances.zones: tells name and number of each zone',
    run: async (t, { cloud }) => {
      t.deepEqual(await cloud.instances.zones(contextOf()), [
        { name: 'ap-guangzhou-3', number: '100003' },
        { name: 'ap-guangzhou-4', number: '100004' },
      ]);
    },
  },
  {
    title: 'eniQuotas.ofVpc: the quota of the VPC, and its ENIs without primary ones',
    run: async (t, { cloud, host }) => {
      const { spec, vpcEniQuota } = host.model.state;
      t.deepEqual(await cloud.eniQuotas.ofVpc(spec.vpcId, contextOf()), { limit: vpcEniQuota, used: 0 });
      await createdEni(cloud, 'of-quota');
      t.deepEqual(await cloud.eniQuotas.ofVpc(spec.vpcId, contextOf()), { limit: vpcEniQuota, used: 1 });
    },
  },
  {
    title: 'instances.eniLimits: asks once per type, primaries not counted',
    run: async (t, { cloud, host }) => {
      const [instance] = await cloud.instances.describe(['ins-cores008'], contextOf());
      t.truthy(instance);
      if (instance === undefined) return;
      const both = await Promise.all([1, 2].map(() => cloud.instances.eniLimits(instance, contextOf())));
      t.deepEqual(both[0], { secondaryEnis: 5, extensionEnis: 0, secondaryIpsPerEni: 19, source: 'api' });
      t.deepEqual(both[0], both[1]);
      await cloud.instances.eniLimits(instance, contextOf());
      t.is(host.counts()['DescribeNetworkInterfaceLimit'], 1);
    },
  },
  {
    title: 'instances.eniLimits: falls back to the table when the API does not know the instance',
    run: async (t, { cloud, host }) => {
      host.faults.add({
        fault: { kind: 'error', code: 'InvalidInstanceId.NotFound' },
        actions: ['DescribeNetworkInterfaceLimit'],
      });
      const [instance] = await cloud.instances.describe(['ins-cores002'], contextOf());
      t.truthy(instance);
      if (instance === undefined) return;
      t.deepEqual(await cloud.instances.eniLimits(instance, contextOf()), {
        secondaryEnis: 3,
        extensionEnis: 0,
        secondaryIpsPerEni: 9,
        source: 'table',
      });
    },
  },
  {
    title: 'enis: live from creation to deletion, each task settles, addresses come and go with them',
    run: async (t, { cloud, host }) => {
      const eniId = await attachedEni(cloud, 'life', 'ins-cores002', 4);
      const [eni] = await cloud.enis.describe([eniId], contextOf());
      t.like(eni, { name: 'life', state: 'AVAILABLE', isPrimary: false, tags: { cluster: 'cls-test' } });
      t.deepEqual(eni?.attachment, { instanceId: 'ins-cores002', deviceIndex: 1, isExtension: false });
      t.is(eni?.ips.filter((ip) => !ip.isPrimary && ip.state === 'AVAILABLE').length, 4);
      t.regex(eni?.mac ?? '', /^20:90:6f:[0-9a-f:]{8}$/);
      const detach = await cloud.enis.detach(eniId, 'ins-cores002', contextOf());
      t.deepEqual(await cloud.tasks.settle(detach, contextOf()), { kind: 'done' });
      t.is((await cloud.enis.describe([eniId], contextOf()))[0]?.attachment, undefined);
      const remove = await cloud.enis.delete(eniId, contextOf());
      t.deepEqual(await cloud.tasks.settle(remove, contextOf()), { kind: 'done' });
      t.deepEqual(await cloud.enis.describe([eniId], contextOf()), []);
      const error = await failure(cloud.enis.delete(eniId, contextOf()));
      t.is(error.retry, 'gone');
      // Three primaries are left of what there was.
      t.is(host.model.state.subnet('subnet-large000').pool.free, 65_533 - 3);
    },
  },
  {
    title: 'enis.attach: places of the extension type have a quota of their own',
    run: async (t, { cloud, host }) => {
      const instanceId = 'ins-extended';
      host.model.state.addInstance({ instanceId, cores: 1, subnetId: 'subnet-large000', extendEnis: 2 });
      const [instance] = await cloud.instances.describe([instanceId], contextOf());
      t.truthy(instance);
      if (instance === undefined) return;
      t.like(await cloud.instances.eniLimits(instance, contextOf()), { secondaryEnis: 1, extensionEnis: 2 });
      const attach = async (name: string, isExtension: boolean): Promise<string> => {
        const eniId = await createdEni(cloud, name, 0);
        const task = await cloud.enis.attach(eniId, instanceId, contextOf(), { isExtension, clientToken: name });
        await cloud.tasks.settle(task, contextOf());
        return eniId;
      };
      const ids = [await attach('x-1', true), await attach('s-1', false), await attach('x-2', true)];
      for (const isExtension of [true, false]) {
        t.like(await failure(attach(`full-${isExtension}`, isExtension)), { retry: 'quota', scope: 'instance-enis' });
      }
      const enis = await cloud.enis.describe(ids, contextOf());
      const places = ids.map((id) => enis.find(({ eniId }) => eniId === id)?.attachment?.isExtension);
      t.deepEqual(places, [true, false, true]);
    },
  },
  {
    title: 'enis.attach: an instance of which the cloud names no places of the extension type has none',
    run: async (t, { cloud }) => {
      const eniId = await createdEni(cloud, 'none', 0);
      const error = await failure(cloud.enis.attach(eniId, 'ins-cores002', contextOf(), { isExtension: true }));
      t.like(error, { retry: 'quota', scope: 'instance-enis' });
    },
  },
  {
    title: 'enis.create: the same token makes one ENI, another request with it is refused',
    run: async (t, { cloud, host }) => {
      const spec = { vpcId: SPEC.vpcId, subnetId: 'subnet-large000', name: 'once', clientToken: 'token-1' };
      const first = await cloud.enis.create(spec, contextOf());
      const second = await cloud.enis.create(spec, contextOf());
      t.is(first.eni.eniId, second.eni.eniId);
      t.is([...host.model.state.enis.values()].filter((eni) => eni.name === 'once').length, 1);
      const error = await failure(cloud.enis.create({ ...spec, name: 'twice' }, contextOf()));
      t.is(error.code, 'UnsupportedOperation.IdempotentParameterMismatch');
      t.is(error.retry, 'never');
    },
  },
  {
    title: 'enis.create: says which quota is used up: the subnet, the VPC',
    run: async (t, { cloud, host }) => {
      await createdEni(cloud, 'small-1', 4, 'subnet-small000');
      const full = await failure(
        cloud.enis.create({ vpcId: SPEC.vpcId, subnetId: 'subnet-small000', name: 'small-2' }, contextOf()),
      );
      t.like(full, { code: 'ResourceInsufficient.Subnet', retry: 'quota', scope: 'subnet' });
      t.regex(full.message, /does not have sufficient IPs.*RequestId=/);
      const { state } = host.model;
      const subnet = state.subnet('subnet-large000');
      for (let count = 1; count < 50; count++) {
        const ip = subnet.pool.take();
        state.makeEni({ subnet, name: `fill-${count}`, description: '', ip, groups: [], tags: {}, isPrimary: false });
      }
      const many = await failure(
        cloud.enis.create({ vpcId: SPEC.vpcId, subnetId: 'subnet-large000', name: 'one-too-many' }, contextOf()),
      );
      t.like(many, { retry: 'quota', scope: 'vpc-enis' });
    },
  },
  {
    title: 'enis.attach: says that the instance is full, or elsewhere',
    run: async (t, { cloud }) => {
      await attachedEni(cloud, 'first', 'ins-cores001');
      const spare = await createdEni(cloud, 'spare');
      t.like(await failure(cloud.enis.attach(spare, 'ins-cores001', contextOf())), {
        retry: 'quota',
        scope: 'instance-enis',
      });
      t.like(await failure(cloud.enis.attach(spare, 'ins-zone4001', contextOf())), {
        code: 'UnsupportedOperation.ZoneMismatch',
        retry: 'never',
      });
    },
  },
  {
    title: 'enis.sweep: finds each ENI once over several pages, by tag, by instance, by subnet',
    run: async (t, { cloud, host }) => {
      const { state } = host.model;
      const subnet = state.subnet('subnet-large000');
      for (let count = 0; count < 230; count++) {
        const ip = subnet.pool.take();
        const tags = { cluster: count % 2 === 0 ? 'cls-a' : 'cls-b' };
        const eni = state.makeEni({
          subnet,
          name: `n${count}`,
          description: '',
          ip,
          groups: [],
          tags,
          isPrimary: false,
        });
        eni.state = 'AVAILABLE';
      }
      const all = await cloud.enis.sweep({ vpcId: SPEC.vpcId }, contextOf());
      t.true(all.isConsistent);
      t.is(all.enis.length, 234);
      t.is(new Set(all.enis.map((eni) => eni.eniId)).size, 234);
      const tagged = await cloud.enis.sweep({ tag: { key: 'cluster', value: 'cls-a' } }, contextOf());
      t.is(tagged.enis.length, 115);
      const ofInstance = await cloud.enis.sweep({ instanceId: 'ins-cores002' }, contextOf());
      t.deepEqual(
        ofInstance.enis.map((eni) => eni.isPrimary),
        [true],
      );
    },
  },
  {
    title: 'ips: are assigned ten a call, unassigned, and named exactly',
    run: async (t, { cloud, host }) => {
      const eniId = await attachedEni(cloud, 'ips', 'ins-cores008');
      host.forget();
      const change = await cloud.ips.assign(eniId, 10, contextOf(), 'ips-token');
      t.is(change.ips.length, 10);
      t.deepEqual(await cloud.tasks.settle(first(change.tasks), contextOf()), { kind: 'done' });
      t.is(host.counts()['AssignPrivateIpAddresses'], 1);
      const away = change.ips.slice(0, 3);
      const unassign = await cloud.ips.unassign(eniId, away, contextOf());
      t.deepEqual(await cloud.tasks.settle(first(unassign.tasks), contextOf()), { kind: 'done' });
      const left = (await cloud.enis.describe([eniId], contextOf()))[0]?.ips.filter((ip) => !ip.isPrimary) ?? [];
      t.deepEqual(left.map((ip) => ip.ip).sort(), change.ips.slice(3).toSorted());
      const exact = await cloud.ips.assignExact(eniId, [first(away)], contextOf());
      t.deepEqual(exact.ips, [first(away)]);
      t.deepEqual(await cloud.tasks.settle(first(exact.tasks), contextOf()), { kind: 'done' });
      const taken = await failure(cloud.ips.assignExact(eniId, [first(away)], contextOf()));
      t.like(taken, { code: 'ResourceInUse', retry: 'never' });
    },
  },
  {
    title: 'ips.assign: more than ten wait for each other, and what was done before a failure is told',
    run: async (t, { cloud }) => {
      const eniId = await attachedEni(cloud, 'nineteen', 'ins-cores008');
      const change = await cloud.ips.assign(eniId, 20, contextOf());
      t.is(change.ips.length, 10);
      t.is(change.tasks.length, 1);
      t.like(change.failure, { retry: 'quota', scope: 'eni-ips' });
    },
  },
  {
    title: 'ips.migrate: moves an address within its subnet',
    run: async (t, { cloud }) => {
      const from = await attachedEni(cloud, 'from', 'ins-cores002', 1);
      const to = await attachedEni(cloud, 'to', 'ins-cores008');
      const ip = (await cloud.enis.describe([from], contextOf()))[0]?.ips.find((one) => !one.isPrimary)?.ip ?? '';
      const task = await cloud.ips.migrate(ip, from, to, contextOf());
      t.deepEqual(await cloud.tasks.settle(task, contextOf()), { kind: 'done' });
      const [eni] = await cloud.enis.describe([to], contextOf());
      t.true(eni?.ips.some((one) => one.ip === ip && one.state === 'AVAILABLE'));
    },
  },
  {
    title: 'ips: IPv6 addresses are assigned and taken away beside the others, where the subnet has a block',
    run: async (t, { cloud }) => {
      const eniId = await attachedEni(cloud, 'dual', 'ins-cores008', 2);
      const change = await cloud.ips.assignIpv6(eniId, 3, contextOf(), 'v6-token');
      t.is(change.ips.length, 3);
      t.true(change.ips.every((ip) => ip.startsWith('fd00:8::')));
      t.deepEqual(await cloud.tasks.settle(first(change.tasks), contextOf()), { kind: 'done' });
      const seen = async () => (await cloud.enis.describe([eniId], contextOf()))[0];
      t.deepEqual(
        (await seen())?.ipv6s?.map((ip) => `${ip.ip} ${ip.state}`),
        change.ips.map((ip) => `${ip} AVAILABLE`),
      );
      t.is((await seen())?.ips.length, 3);
      const unassign = await cloud.ips.unassignIpv6(eniId, change.ips.slice(0, 2), contextOf());
      t.deepEqual(await cloud.tasks.settle(first(unassign.tasks), contextOf()), { kind: 'done' });
      t.deepEqual(
        (await seen())?.ipv6s?.map((ip) => ip.ip),
        change.ips.slice(2),
      );
      const many = await failure(
        cloud.ips.assignIpv6(eniId, 10, contextOf()).then(() => cloud.ips.assignIpv6(eniId, 10, contextOf())),
      );
      t.like(many, { code: 'LimitExceeded.Address', retry: 'quota', scope: 'eni-ips' });
      const without = await createdEni(cloud, 'v4-only', 0, 'subnet-small000');
      t.like(await failure(cloud.ips.assignIpv6(without, 1, contextOf())), {
        code: 'UnsupportedOperation.UnassignCidrBlock',
        retry: 'never',
      });
      const [subnet] = await cloud.subnets.describe(['subnet-large000'], contextOf());
      t.is(subnet?.cidrV6, 'fd00:8::/64');
    },
  },
  {
    title: 'loadBalancers: are made and deleted by tasks of their own kind, one at a time',
    run: async (t, { cloud }) => {
      const { loadBalancers } = cloud;
      const spec = { type: 'INTERNAL', name: 'lb', vpcId: SPEC.vpcId, subnetId: 'subnet-large000' } as const;
      const made = await loadBalancers.create({ ...spec, tags: { a: 'b' }, clientToken: 'lb-1' }, contextOf());
      const outcome = await loadBalancers.settle(made, contextOf());
      t.is(outcome.kind, 'done');
      const [id = ''] = outcome.kind === 'done' ? outcome.loadBalancerIds : [];
      t.like((await loadBalancers.describe([id, 'lb-missing0'], contextOf()))[0], {
        loadBalancerId: id,
        name: 'lb',
        isNormal: true,
        tags: { a: 'b' },
      });
      const gone = await loadBalancers.delete(id, contextOf());
      t.is((await loadBalancers.settle(gone, contextOf())).kind, 'done');
      t.deepEqual(await loadBalancers.describe([id], contextOf()), []);
      t.like(await failure(loadBalancers.delete(id, contextOf())), { retry: 'gone' });
      t.like(await failure(loadBalancers.create({ ...spec, type: 'OPEN' }, contextOf())), { retry: 'never' });
    },
  },
  {
    title: 'loadBalancers.settle: tells a failure, and a task that nobody knows',
    run: async (t, { cloud, host }) => {
      const spec = { type: 'OPEN', name: 'lb', vpcId: SPEC.vpcId } as const;
      host.faults.add({ fault: { kind: 'task', fate: 'fail' }, actions: ['CreateLoadBalancer'], times: 1 });
      const failed = await cloud.loadBalancers.create(spec, contextOf());
      t.like(await cloud.loadBalancers.settle(failed, contextOf()), {
        kind: 'failed',
        reason: 'internal resource scheduling failed',
      });
      const unknown = { taskId: '00000000-0000-4000-8000-00000000ffff', action: 'CreateLoadBalancer' };
      t.deepEqual(await cloud.loadBalancers.settle(unknown, contextOf()), { kind: 'lost' });
    },
  },
  ...(['global', 'table', 'cluster'] as const).map(
    (kind): Case => ({
      title: `routes: ${kind}: are created, listed, moved and deleted, several in a call where the API takes them`,
      run: async (t, { cloud, host }) => {
        const routes = cloud.routes[kind];
        const place = placeOf(host, kind);
        const description = kind === 'cluster' ? '' : 'of a test';
        const specs = [1, 2, 3].map((index) => ({ cidr: `172.16.${index}.0/24`, gatewayIp: '10.0.0.9', description }));
        const made = [];
        for (const some of batchesOf(specs, routes.maxPerCall))
          made.push(...(await routes.create(place, some, contextOf())));
        for (const [index, spec] of specs.entries()) t.like(made[index], spec);
        t.deepEqual(await routes.list(place, contextOf()), { routes: made, isConsistent: true });
        t.deepEqual(host.seen.filter(({ action }) => action.startsWith('Create')).length, kind === 'cluster' ? 3 : 1);
        const [first, second, third] = made;
        if (first === undefined || second === undefined || third === undefined) throw new Error('a route is missing');
        const moved =
          routes.replace === undefined
            ? await routes
                .delete(place, [first], contextOf())
                .then(() => routes.create(place, [{ ...first, gatewayIp: '10.0.0.10' }], contextOf()))
            : await routes.replace(place, [{ route: first, gatewayIp: '10.0.0.10' }], contextOf());
        t.like(moved[0], { cidr: first.cidr, description, gatewayIp: '10.0.0.10' });
        t.like(await failure(routes.delete(place, [first], contextOf())), { retry: 'gone' });
        if (routes.maxPerCall > 1) {
          t.like(await failure(routes.delete(place, [second, first], contextOf())), { retry: 'gone' });
        }
        t.is((await routes.list(place, contextOf())).routes.length, 3, 'all of a call, or none');
        for (const some of batchesOf([...moved, second, third], routes.maxPerCall)) {
          await routes.delete(place, some, contextOf());
        }
        t.deepEqual((await routes.list(place, contextOf())).routes, []);
      },
    }),
  ),
  ...(['global', 'table', 'cluster'] as const).map(
    (kind): Case => ({
      title: `routes.create: ${kind}: tells a route that exists, one by another instance, a conflict, and the quota`,
      run: async (t, { cloud, host }) => {
        const routes = cloud.routes[kind];
        const place = placeOf(host, kind);
        const create = (cidr: string, gatewayIp = '10.0.0.9') =>
          routes.create(place, [{ cidr, gatewayIp, description: '' }], contextOf());
        await create('172.16.0.0/24');
        const isVpc = kind !== 'cluster';
        t.like(await failure(create('172.16.0.0/24')), {
          code: isVpc ? 'InvalidParameterValue.Duplicate' : 'InternalError.ResourceExistAlready',
          retry: 'resolve',
        });
        t.like(await failure(create('172.16.0.0/24', '10.0.0.10')), {
          code: isVpc ? 'UnsupportedOperation.Ecmp' : 'InternalError.CidrConflictWithOtherRoute',
          retry: 'never',
        });
        t.like(await failure(create('10.0.128.0/24')), {
          code: isVpc ? 'InvalidParameterValue.VpcCidrConflict' : 'InternalError.CidrConflictWithVpcCidr',
          retry: 'never',
        });
        for (const wrong of ['172.16.1.1/24', 'fd00::/64']) t.is((await failure(create(wrong))).retry, 'never', wrong);
        if (kind === 'cluster') {
          t.like(await failure(create('192.168.0.0/24')), {
            code: 'InternalError.CidrOutOfRouteTable',
            retry: 'never',
          });
        }
        const { state } = host.model;
        state.globalRouteQuota = 1;
        state.routeTables.quota = 1;
        state.clusterRouteTables.quota = 1;
        t.like(await failure(create('172.16.1.0/24')), { retry: 'quota', scope: 'vpc-routes' });
        if (routes.maxPerCall === 1) return;
        const both = ['172.16.2.0/24', '10.0.128.0/24'].map((cidr) => ({
          cidr,
          gatewayIp: '10.0.0.9',
          description: '',
        }));
        t.is((await failure(routes.create(place, both, contextOf()))).retry, 'never');
        t.is((await routes.list(place, contextOf())).routes.length, 1, 'all of a call, or none');
      },
    }),
  ),
  ...(['global', 'table', 'cluster'] as const).map(
    (kind): Case => ({
      title: `routes: ${kind}: a change whose answer is lost has happened, and is for the caller to find out`,
      run: async (t, { cloud, host }) => {
        const routes = cloud.routes[kind];
        const place = placeOf(host, kind);
        const specs = [{ cidr: '172.16.0.0/24', gatewayIp: '10.0.0.9', description: '' }];
        host.faults.add({ fault: { kind: 'reset', after: true }, actions: ['Create*'], times: 1 });
        t.is((await failure(routes.create(place, specs, contextOf()))).retry, 'resolve');
        t.like(await failure(routes.create(place, specs, contextOf())), { retry: 'resolve' });
        const found = (await routes.list(place, contextOf())).routes;
        t.like(found[0], specs[0] ?? {});
        host.faults.add({ fault: { kind: 'http', status: 502, after: true }, actions: ['Delete*'], times: 1 });
        t.is((await failure(routes.delete(place, found, contextOf()))).retry, 'resolve');
        t.deepEqual((await routes.list(place, contextOf())).routes, []);
      },
    }),
  ),
  {
    title: 'routes: global: are listed over several pages, and only those of the own VPC',
    run: async (t, { cloud, host }) => {
      const { state } = host.model;
      const add = (vpcId: string, cidr: string) =>
        state.addGlobalRoute({ vpcId, cidr, gatewayIp: '10.0.0.9', description: '' });
      for (let count = 0; count < 230; count++) add(SPEC.vpcId, `172.17.${count}.0/24`);
      add('vpc-others00', '172.16.0.0/24');
      const all = await cloud.routes.global.list(SPEC.vpcId, contextOf());
      t.true(all.isConsistent);
      t.is(new Set(all.routes.map(({ routeId }) => routeId)).size, 230);
      t.deepEqual(await cloud.routes.global.list('vpc-others01', contextOf()), { routes: [], isConsistent: true });
    },
  },
  {
    title: 'routes: table: what the cloud made, and what leads to no instance, has no mark of ours; IPv6 is left out',
    run: async (t, { cloud, host }) => {
      const place = placeOf(host, 'table');
      const routes = cloud.routes.table;
      host.model.state.routeTables.add(place, [
        {
          cidr: '172.16.0.0/24',
          gatewayIp: 'ccn-1',
          gatewayType: 'CCN',
          routeType: 'CCN',
          description: 'tke-eni cls-a',
        },
        { cidr: '172.16.1.0/24', gatewayIp: 'nat-1', gatewayType: 'NAT', description: 'by hand' },
        { cidr: '', gatewayIp: '10.0.0.9' },
      ]);
      const listed = (await routes.list(place, contextOf())).routes;
      t.deepEqual(
        listed.map(({ cidr, gatewayIp, description }) => [cidr, gatewayIp, description]),
        [
          ['172.16.0.0/24', 'ccn-1', ''],
          ['172.16.1.0/24', 'nat-1', 'by hand'],
        ],
      );
      t.deepEqual(
        listed.map(({ isSystem }) => isSystem),
        [true, undefined],
      );
      host.model.state.routeTables.quota = 70;
      t.is(await routes.quota?.(contextOf()), 70);
      t.like(await failure(routes.list('rtb-missing0', contextOf())), { retry: 'gone' });
      t.like(await failure(routes.create('rtb-missing0', [], contextOf())), { retry: 'never' });
    },
  },
  {
    title: 'routes: cluster: a route table that does not exist is told, with a list as with a change',
    run: async (t, { cloud }) => {
      const routes = cloud.routes.cluster;
      const spec = { cidr: '172.16.0.0/24', gatewayIp: '10.0.0.9', description: '' };
      t.like(await failure(routes.list('cls-missing0', contextOf())), { code: 'InternalError.RouteTableNotFound' });
      t.like(await failure(routes.create('cls-missing0', [spec], contextOf())), { retry: 'gone' });
    },
  },
  {
    title: 'reservedIps: are reserved by address or any, found by name, address and tag, and released once',
    run: async (t, { cloud, host }) => {
      const { reservedIps } = cloud;
      const [subnet] = SPEC.subnets;
      const subnetId = subnet?.subnetId ?? '';
      const spec = { vpcId: SPEC.vpcId, subnetId, name: 'r-1', tags: { owner: 'test' }, clientToken: 'token-1' };
      const any = await reservedIps.reserve(spec, contextOf());
      t.regex(any.reservationId, /^rsvip-[a-z0-9]{8}$/);
      t.like(any, { vpcId: SPEC.vpcId, subnetId, name: 'r-1', tags: { owner: 'test' } });
      t.false('boundTo' in any);
      t.deepEqual(await reservedIps.reserve(spec, contextOf()), any);
      const free = host.model.state.subnet(subnetId).pool.take();
      host.model.state.subnet(subnetId).pool.give(free);
      const exact = await reservedIps.reserve({ ...spec, name: 'r-2', ip: free, clientToken: 'token-2' }, contextOf());
      t.is(exact.ip, free);
      const idsOf = async (query: Parameters<typeof reservedIps.find>[1]) => {
        const { reservations, isConsistent } = await reservedIps.find(SPEC.vpcId, query, contextOf());
        t.true(isConsistent);
        return reservations.map(({ reservationId }) => reservationId);
      };
      t.deepEqual(await idsOf({ name: 'r-1' }), [any.reservationId]);
      t.deepEqual(await idsOf({ ip: free }), [exact.reservationId]);
      t.deepEqual(await idsOf({ tag: { key: 'owner', value: 'test' } }), [any.reservationId, exact.reservationId]);
      t.deepEqual(await idsOf({ tag: { key: 'owner', value: 'others' } }), []);
      await reservedIps.release(SPEC.vpcId, any.reservationId, contextOf());
      t.like(await failure(reservedIps.release(SPEC.vpcId, any.reservationId, contextOf())), { retry: 'gone' });
      t.deepEqual(await idsOf({ name: 'r-1' }), []);
    },
  },
  {
    title: 'reservedIps.reserve: tells an address in use, a full quota, a full subnet, and a lost answer',
    run: async (t, { cloud, host }) => {
      const { reservedIps } = cloud;
      const { state } = host.model;
      const subnetId = SPEC.subnets[0]?.subnetId ?? '';
      const spec = { vpcId: SPEC.vpcId, subnetId, name: 'r', clientToken: 'token-1' };
      const used = state.subnet(subnetId).pool.take();
      t.like(await failure(reservedIps.reserve({ ...spec, ip: used }, contextOf())), {
        code: 'ResourceInUse',
        retry: 'never',
      });
      host.faults.add({ fault: { kind: 'reset', after: true }, actions: ['CreateReserveIpAddresses'], times: 1 });
      const kept = await reservedIps
        .reserve({ ...spec, clientToken: 'token-2' }, contextOf())
        .catch((error: unknown) => {
          t.like(error, { retry: 'resolve' });
          return reservedIps.reserve({ ...spec, clientToken: 'token-2' }, contextOf());
        });
      t.deepEqual([...state.reservedIps.reservations.keys()], [kept.reservationId]);
      state.reservedIpQuota = 1;
      const refused = await failure(reservedIps.reserve({ ...spec, clientToken: 'token-3' }, contextOf()));
      t.like(refused, { retry: 'quota', scope: 'reserved-ips' });
    },
  },
  {
    title: 'reservedIps: an ENI gets a reserved address by its text only, and gives it back to the reservation',
    run: async (t, { cloud, host }) => {
      const { reservedIps, enis, ips, tasks } = cloud;
      const subnetId = SPEC.subnets[0]?.subnetId ?? '';
      const spec = { vpcId: SPEC.vpcId, subnetId, name: 'r', clientToken: 'token-1' };
      const { ip, reservationId } = await reservedIps.reserve(spec, contextOf());
      const { eni, task } = await enis.create({ vpcId: SPEC.vpcId, subnetId, name: 'of-a-test' }, contextOf());
      t.is((await tasks.settle(task, contextOf())).kind, 'done');
      const settle = async (change: Awaited<ReturnType<typeof ips.assign>>): Promise<void> => {
        t.is(change.failure, undefined);
        for (const one of change.tasks) t.is((await tasks.settle(one, contextOf())).kind, 'done');
      };
      const [{ boundTo } = { boundTo: undefined }] = await found();
      t.is(boundTo, undefined);
      await settle(await ips.assignExact(eni.eniId, [ip], contextOf(), 'token-2'));
      t.like((await found())[0], { ip, boundTo: eni.eniId });
      t.like(await failure(reservedIps.release(SPEC.vpcId, reservationId, contextOf())), { code: 'ResourceInUse' });
      await settle(await ips.unassign(eni.eniId, [ip], contextOf()));
      t.false('boundTo' in ((await found())[0] ?? {}));
      t.throws(() => host.model.state.subnet(subnetId).pool.takeExact(ip), { message: /in use/ });
      await reservedIps.release(SPEC.vpcId, reservationId, contextOf());
      t.is(host.model.state.subnet(subnetId).pool.takeExact(ip), ip);

      async function found() {
        return (await reservedIps.find(SPEC.vpcId, { ip }, contextOf())).reservations;
      }
    },
  },
  {
    title: 'podLimits: asks the cluster service, which does not know every type',
    run: async (t, { cloud }) => {
      t.like((await cloud.podLimits('S5.8CORE8', contextOf()))[0], { routeEni: 95, directEni: 5 });
      t.deepEqual(await cloud.podLimits('UNKNOWN', contextOf()), []);
    },
  },
  {
    title: 'subnets: tell how many addresses are free',
    run: async (t, { cloud }) => {
      const all = await cloud.subnets.sweep(SPEC.vpcId, contextOf());
      t.deepEqual(all.map((subnet) => subnet.subnetId).sort(), SPEC.subnets.map((one) => one.subnetId).toSorted());
      await createdEni(cloud, 'taker', 2, 'subnet-small000');
      const [small] = await cloud.subnets.describe(['subnet-small000'], contextOf());
      t.like(small, { zone: 'ap-guangzhou-3', cidr: '10.1.0.0/29', totalIps: 5, freeIps: 2 });
    },
  },
  {
    title: 'securityGroups: keep their order, are added and taken away',
    run: async (t, { cloud }) => {
      const eniId = await createdEni(cloud, 'groups');
      const groups = async () => (await cloud.enis.describe([eniId], contextOf()))[0]?.securityGroupIds;
      await cloud.securityGroups.replace(eniId, ['sg-b', 'sg-a'], contextOf());
      t.deepEqual(await groups(), ['sg-b', 'sg-a']);
      await cloud.securityGroups.associate([eniId], ['sg-c'], contextOf());
      await cloud.securityGroups.disassociate([eniId], ['sg-b'], contextOf());
      t.deepEqual(await groups(), ['sg-a', 'sg-c']);
    },
  },
  {
    title: 'securityGroups: ingress rules come in their order; a group without any admits nobody',
    run: async (t, { cloud, host }) => {
      const { state } = host.model;
      const ingress = (group: string) => cloud.securityGroups.ingress(group, contextOf());
      t.deepEqual(await ingress('sg-a'), [{ isAccepted: true, cidr: '0.0.0.0/0', protocol: 'ALL' }]);
      state.setSecurityRules('sg-a', [
        { cidr: '10.0.0.0/8', protocol: 'TCP', port: 80, isAccepted: true },
        { cidr: '0.0.0.0/0', isAccepted: false },
      ]);
      t.deepEqual(await ingress('sg-a'), [
        { isAccepted: true, cidr: '10.0.0.0/8', protocol: 'TCP', ports: [[80, 80]] },
        { isAccepted: false, cidr: '0.0.0.0/0', protocol: 'ALL' },
      ]);
      state.setSecurityRules('sg-b', []);
      t.deepEqual(await ingress('sg-b'), []);
    },
  },
  {
    title: 'groups: are made with tags, get policies in one step, and are deleted',
    run: async (t, { cloud, host }) => {
      const { groups } = cloud;
      const spec = { name: 'web', description: 'of a Service', tags: { owner: 'cls-1/service/u1' } };
      const id = await groups.create(spec, contextOf());
      const other = await groups.create({ ...spec, tags: { owner: 'cls-1/service/u2' } }, contextOf());
      const found = await groups.find({ key: 'owner', value: 'cls-1/service/u1' }, contextOf());
      t.like(found.groups, [{ securityGroupId: id, name: 'web', tags: spec.tags }]);
      t.is(found.groups.length, 1);
      t.true(found.isConsistent && (found.groups[0]?.createdAtMs ?? 0) > 0);

      const before = await groups.policies(id, contextOf());
      t.deepEqual(before.rules, []);
      const rules: readonly IngressRule[] = [
        { isAccepted: true, cidr: '10.0.0.0/8', protocol: 'TCP', ports: [[80, 81]] },
        { isAccepted: true, cidr: '192.0.2.7/32', protocol: 'UDP', ports: [[53, 53]] },
      ];
      // The version of a new group must not clear what comes with it.
      await groups.replacePolicies(id, rules, before.version, contextOf());
      const after = await groups.policies(id, contextOf());
      t.deepEqual(after.rules, rules);
      t.not(after.version, before.version);

      await groups.replacePolicies(id, rules.slice(1), after.version, contextOf());
      t.deepEqual((await groups.policies(id, contextOf())).rules, rules.slice(1));
      const late = failure(groups.replacePolicies(id, rules, after.version, contextOf()));
      t.like(await late, { code: 'UnsupportedOperation.VersionMismatch', retry: 'resolve' });
      t.deepEqual((await groups.policies(id, contextOf())).rules, rules.slice(1));

      const eniId = await createdEni(cloud, 'in-a-group');
      await cloud.securityGroups.replace(eniId, [id], contextOf());
      t.like(await failure(groups.delete(id, contextOf())), { code: 'ResourceInUse', retry: 'never' });
      await cloud.securityGroups.replace(eniId, ['sg-a'], contextOf());
      await groups.delete(id, contextOf());
      t.like(await failure(groups.delete(id, contextOf())), { retry: 'gone' });
      t.like(await failure(groups.policies(id, contextOf())), { retry: 'gone' });
      t.deepEqual((await groups.find({ key: 'owner', value: 'cls-1/service/u1' }, contextOf())).groups, []);
      await groups.delete(other, contextOf());

      host.model.state.securityGroupQuota = 0;
      t.like(await failure(groups.create(spec, contextOf())), { retry: 'quota', scope: 'security-groups' });
    },
  },
  {
    title: 'groups: one has so many policies, a port or a range of ports each, and all of them or none are set',
    run: async (t, { cloud, host }) => {
      const id = await cloud.groups.create({ name: 'web', description: '', tags: {} }, contextOf());
      const many = Array.from({ length: 50 }, (_, at): readonly [number, number] => [2 * at + 1, 2 * at + 1]);
      const rulesFor = (cidrs: readonly string[]) =>
        cidrs.map((cidr): IngressRule => ({ isAccepted: true, cidr, protocol: 'TCP', ports: many }));
      await cloud.groups.replacePolicies(id, rulesFor(['10.0.0.0/8', '192.0.2.0/24']), '0', contextOf());
      const { version, rules } = await cloud.groups.policies(id, contextOf());
      t.is(rules.length, 100);
      const three = rulesFor(['10.0.0.0/8', '192.0.2.0/24', '198.51.100.0/24']);
      const refused = await failure(cloud.groups.replacePolicies(id, three, version, contextOf()));
      t.like(refused, { retry: 'quota', scope: 'security-group-policies' });
      t.is((await cloud.groups.policies(id, contextOf())).version, version);
      host.model.state.securityPolicyQuota = 150;
      await cloud.groups.replacePolicies(id, three, version, contextOf());
      t.is((await cloud.groups.policies(id, contextOf())).rules.length, 150);
    },
  },
  {
    title: 'eips: are allocated, bound to an address, set free and released; the quota is told',
    run: async (t, { cloud }) => {
      const eniId = await attachedEni(cloud, 'eip', 'ins-cores002', 1);
      const ip = (await cloud.enis.describe([eniId], contextOf()))[0]?.ips.find((one) => !one.isPrimary)?.ip ?? '';
      const made = await cloud.eips.allocate({ count: 1, name: 'pod-eip', tags: { a: 'b' } }, contextOf());
      t.deepEqual(await cloud.tasks.settle(made.task, contextOf()), { kind: 'done' });
      const eipId = first(made.eipIds);
      const bind = await cloud.eips.associate(eipId, eniId, ip, contextOf());
      t.deepEqual(await cloud.tasks.settle(bind, contextOf()), { kind: 'done' });
      const [bound] = await cloud.eips.describe({ eniId }, contextOf());
      t.like(bound, { eipId, status: 'BIND_ENI', privateIp: ip, name: 'pod-eip' });
      const loose = await cloud.eips.disassociate(eipId, contextOf());
      t.deepEqual(await cloud.tasks.settle(loose, contextOf()), { kind: 'done' });
      const released = await cloud.eips.release(eipId, contextOf());
      t.deepEqual(await cloud.tasks.settle(released, contextOf()), { kind: 'done' });
      t.deepEqual(await cloud.eips.describe({ eipIds: [eipId] }, contextOf()), []);
      t.like(await failure(cloud.eips.allocate({ count: 4 }, contextOf())), { retry: 'quota', scope: 'eips' });
    },
  },
  {
    title: 'tasks.settle: tells a failure, and a task that nobody knows',
    run: async (t, { cloud, host }) => {
      const eniId = await createdEni(cloud, 'unlucky');
      host.faults.add({ fault: { kind: 'task', fate: 'fail' }, actions: ['AttachNetworkInterface'], times: 1 });
      const failed = await cloud.enis.attach(eniId, 'ins-cores002', contextOf());
      t.deepEqual(await cloud.tasks.settle(failed, contextOf()), {
        kind: 'failed',
        reason: 'internal resource scheduling failed',
      });
      host.faults.add({ fault: { kind: 'task', fate: 'vanish' }, actions: ['AttachNetworkInterface'], times: 1 });
      const lost = await cloud.enis.attach(eniId, 'ins-cores002', contextOf());
      t.deepEqual(await cloud.tasks.settle(lost, contextOf()), { kind: 'lost' });
    },
  },
  {
    title: 'calls: a change without an answer is for the caller to resolve, unless it carries a token',
    run: async (t, { cloud, host }) => {
      const eniId = await attachedEni(cloud, 'silent', 'ins-cores002', 2);
      const ips = (await cloud.enis.describe([eniId], contextOf()))[0]?.ips.filter((one) => !one.isPrimary) ?? [];
      host.faults.add({ fault: { kind: 'reset', after: true }, actions: ['UnassignPrivateIpAddresses'], times: 1 });
      const error = await failure(cloud.ips.unassign(eniId, [first(ips).ip], contextOf()));
      t.is(error.retry, 'resolve');
      host.faults.add({
        fault: { kind: 'http', status: 502, after: true },
        actions: ['CreateNetworkInterface'],
        times: 2,
      });
      const spec = { vpcId: SPEC.vpcId, subnetId: 'subnet-large000', name: 'answered', clientToken: 'answered' };
      t.is((await cloud.enis.create(spec, contextOf())).eni.name, 'answered');
      t.is([...host.model.state.enis.values()].filter((eni) => eni.name === 'answered').length, 1);
    },
  },
  {
    title: 'calls: reads go through throttling, gateways and broken connections',
    run: async (t, { cloud, host }) => {
      host.faults.add({
        fault: { kind: 'error', code: 'RequestLimitExceeded' },
        actions: ['DescribeSubnets'],
        times: 1,
      });
      host.faults.add({ fault: { kind: 'http', status: 503 }, actions: ['DescribeSubnets'], times: 1 });
      host.faults.add({ fault: { kind: 'reset' }, actions: ['DescribeSubnets'], times: 1 });
      t.is((await cloud.subnets.sweep(SPEC.vpcId, contextOf())).length, 3);
    },
  },
  {
    title: 'calls: abort with the reason of their signal, and end at their deadline',
    run: async (t, { cloud, host }) => {
      host.faults.add({ fault: { kind: 'hang' }, actions: ['DescribeSubnets'] });
      const controller = new AbortController();
      const reason = new Error('not wanted any more');
      const pending = cloud.subnets.sweep(SPEC.vpcId, contextOf({ signal: controller.signal }));
      controller.abort(reason);
      t.is(await pending.catch((error: unknown) => error), reason);
      const late = await failure(cloud.subnets.sweep(SPEC.vpcId, contextOf({ timeoutMs: 300 })));
      t.like(late, { code: 'DEADLINE', retry: 'backoff' });
      const bound = contextOf({ timeoutMs: 1_000 });
      host.faults.add({ fault: { kind: 'hang' }, actions: ['ModifyNetworkInterfaceAttribute'] });
      const change = await failure(cloud.securityGroups.replace('eni-00000001', ['sg-a'], bound));
      t.like(change, { code: 'TIMEOUT', retry: 'resolve' });
    },
  },
];

/** Makes what routes of a kind are kept in, where there is none; returns its name. */
function placeOf({ model }: TestCloud['host'], kind: RouteKind): string {
  if (kind === 'global') return SPEC.vpcId;
  if (kind === 'table') return model.state.routeTables.addTable('rtb-table000', SPEC.vpcId).tableId;
  return model.state.clusterRouteTables.addTable('cls-contract', SPEC.vpcId, ['172.16.0.0/16']).tableId;
}

function first<T>(items: readonly T[]): T {
  const [item] = items;
  if (item === undefined) throw new Error('the list is empty');
  return item;
}

async function failure(work: Promise<unknown>): Promise<CloudError> {
  const error = await work.then(
    () => new Error('it went well'),
    (caught: unknown) => caught,
  );
  if (isCloudError(error)) return error;
  throw error;
}

const runOn = test.macro(async (t, binding: Binding, { run }: Case) => {
  const on = await binding();
  try {
    await on.wait(run(t, on));
  } finally {
    await on.close();
  }
});

for (const one of CASES) {
  test(`in process: ${one.title}`, runOn, inProcess, one);
  test(`over HTTP: ${one.title}`, runOn, overHttp, one);
}

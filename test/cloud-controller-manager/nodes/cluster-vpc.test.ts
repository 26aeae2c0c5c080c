/** Which VPC the cluster has without `--vpc-id`, and what an instance is while the cloud's answers lack it. */
import test, { type ExecutionContext } from 'ava';
import { classifyError } from '../../../cloud/classify-error.ts';
import { readProviderId } from '../../../cloud/provider-id.ts';
import type { TencentApi } from '../../../cloud/tencent/requests.ts';
import type { NodeInstances } from '../../../cloud-controller-manager/controller/node-instances.ts';
import type { Controller } from '../../../cloud-controller-manager/term/controllers.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { recordOf, recordsOf } from '../../../runtime/json.ts';
import { ccmScene } from '../ccm-scene.ts';
import { ServiceWorld } from '../services/service-world.ts';

const [A, B] = ['vpc-00000001', 'vpc-00000002'];
const SEEN = 'tke.cloud.tencent.com/seen-instance';
const PERIOD_MS = 900_000;
const RETRY_MS = 31_000;
/** A call that fails is repeated for some seconds. */
const LED_MS = 20_000;

/** How the cloud answers about an instance; `made-up`: it does not take the id. */
type Trouble = 'fails' | 'lacks' | 'made-up' | 'no-vpc' | 'no-addresses';

/** What a leader knows of the instances of Nodes, while the cloud answers about some of them as it should not. */
class VpcScene {
  readonly trouble = new Map<string, Trouble>();
  readonly scene: Awaited<ReturnType<typeof ccmScene>>;
  instances: NodeInstances | undefined;
  /** What the VPC was at each change that was told. */
  readonly told: (string | undefined)[] = [];
  #close: () => Promise<void> = async () => undefined;

  constructor(scene: VpcScene['scene']) {
    this.scene = scene;
  }

  /** Begins a term: another leader in the place of the one before. */
  async lead(...flags: readonly string[]): Promise<void> {
    await this.stop();
    const { clock } = this.scene;
    const controller: Controller = {
      name: 'cloud-node-controller',
      rights: [{ verb: 'list', resource: 'nodes' }],
      run: async ({ instances }, signal) => {
        this.instances = instances;
        this.told.length = 0;
        const end = instances.subscribe(() => this.told.push(instances.vpcId));
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        end();
      },
    };
    const given = flags.length > 0 ? flags : ['--leader-elect=false'];
    const wrappers = { kube: <T>(client: T): T => client, api: (api: TencentApi) => this.#troubled(api) };
    const ccm = await this.scene.start('ccm', given, [controller], wrappers);
    this.#close = () => clock.run(ccm.close());
    await clock.advance(LED_MS);
  }

  async stop(): Promise<void> {
    await this.#close();
  }

  /** Starts an instance and registers its Node, a second after the one before. */
  async join(name: string, vpcId: string, seenIn?: string): Promise<void> {
    const { host, clock, admin } = this.scene;
    const instanceId = `ins-vpc${name}`;
    host.model.advance(clock.nowMs());
    host.model.state.addInstance({ instanceId, cores: 4, subnetId: 'subnet-node0001' });
    Object.assign(host.model.state.instance(instanceId), { vpcId });
    const annotations = seenIn === undefined ? {} : { [SEEN]: `${seenIn}/${instanceId}` };
    const spec = { providerID: `qcloud:///100003/${instanceId}` };
    await clock.run(admin.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name, annotations }, spec }));
    await clock.advance(1_000);
  }

  async leave(name: string): Promise<void> {
    const { clock, admin } = this.scene;
    await clock.run(admin.delete(NODES, { name }));
    await clock.advance(1_000);
  }

  /** From now on the cloud answers so about these. */
  set(trouble: Trouble | undefined, ...names: readonly string[]): void {
    for (const name of names)
      if (trouble === undefined) this.trouble.delete(`ins-vpc${name}`);
      else this.trouble.set(`ins-vpc${name}`, trouble);
  }

  of(name: string) {
    return this.instances?.of({ providerId: readProviderId(`qcloud:///100003/ins-vpc${name}`) });
  }

  get vpcId(): string | undefined {
    return this.instances?.vpcId;
  }

  async advance(ms: number): Promise<void> {
    await this.scene.clock.advance(ms);
  }

  #troubled(api: TencentApi): TencentApi {
    return {
      ...api,
      call: async (action, request, signal) => {
        const answer = await api.call(action, request, signal);
        if (action !== 'DescribeInstances') return answer;
        const ids: readonly string[] = (request as { readonly InstanceIds?: readonly string[] }).InstanceIds ?? [];
        const bad = ids.filter((id) => ['fails', 'made-up'].includes(this.trouble.get(id) ?? ''));
        const fail = (code: string) => classifyError({ code, action, text: 'no' });
        // A batch is divided until a bad id is alone.
        if (bad.length > 0 && ids.length > 1) throw fail('InvalidInstanceId.Malformed');
        if (bad.length > 0)
          throw fail(this.trouble.get(bad[0] ?? '') === 'fails' ? 'InternalError' : 'InvalidInstanceId.Malformed');
        const InstanceSet = recordsOf(recordOf(answer)['InstanceSet']).flatMap((one) => {
          const trouble = this.trouble.get(String(one['InstanceId']));
          if (trouble === 'no-vpc') return { ...one, VirtualPrivateCloud: null };
          if (trouble === 'no-addresses') return { ...one, PrivateIpAddresses: null };
          return trouble === 'lacks' ? [] : one;
        });
        return { ...recordOf(answer), InstanceSet, TotalCount: InstanceSet.length };
      },
    };
  }
}

async function start(): Promise<VpcScene> {
  return new VpcScene(await ccmScene());
}

/** The VPC now, and from now on: nobody was told another one. */
function isIn(t: ExecutionContext, world: VpcScene, vpcId: string | undefined, when: string): void {
  t.is(world.vpcId, vpcId, when);
  t.deepEqual(
    world.told.filter((one) => one !== vpcId),
    [],
    when,
  );
}

test('a scale-out in another VPC changes nothing while an instance of the first is left', async (t) => {
  const world = await start();
  await world.join('n1', A);
  await world.lead();
  for (const name of ['n2', 'n3', 'n4']) await world.join(name, B);
  await world.advance(5_000);
  isIn(t, world, A, 'after the scale-out');
  await world.leave('n1');
  await world.advance(5_000);
  t.is(world.vpcId, B);
  await world.stop();
});

test('the next leader keeps it by the lock, whatever the Nodes say by then', async (t) => {
  const world = await start();
  await world.join('n1', A, A);
  await world.lead('--leader-elect=true');
  for (const name of ['n2', 'n3', 'n4']) await world.join(name, B, B);
  await world.advance(20_000);
  isIn(t, world, A, 'the first leader');
  await world.lead('--leader-elect=true');
  await world.advance(20_000);
  isIn(t, world, A, 'the next leader');
  world.set('fails', 'n1', 'n2', 'n3', 'n4');
  await world.lead('--leader-elect=true');
  await world.advance(20_000);
  isIn(t, world, A, 'while the cloud does not answer');
  await world.stop();
});

for (const trouble of ['fails', 'lacks', 'no-vpc', 'no-addresses'] as const)
  test(`after a restart a partial answer (${trouble}) does not change what most annotations say`, async (t) => {
    const world = await start();
    for (const name of ['n1', 'n2']) await world.join(name, A, A);
    await world.join('n3', B, B);
    world.set(trouble, 'n1', 'n2');
    await world.lead();
    isIn(t, world, A, 'at the start');
    await world.advance(RETRY_MS);
    isIn(t, world, A, 'after more such answers');
    world.set(undefined, 'n1', 'n2');
    await world.advance(RETRY_MS);
    isIn(t, world, A, 'when all is answered');
    await world.stop();
  });

for (const trouble of ['fails', 'no-vpc'] as const)
  test(`without annotations nothing is decided by the few that are answered (${trouble}), and the end of it is told`, async (t) => {
    const world = await start();
    await world.join('n1', B);
    for (const name of ['n2', 'n3']) await world.join(name, A);
    world.set(trouble, 'n2', 'n3');
    await world.lead();
    await world.advance(120_000);
    t.is(world.of('n1')?.vpcId, B);
    isIn(t, world, undefined, 'while two of three are not answered');
    world.set(undefined, 'n2', 'n3');
    await world.advance(120_000);
    t.is(world.vpcId, A);
    t.is(world.told.at(-1), A);
    await world.stop();
  });

test('a majority that no answer can outvote decides, and so do all answers but that about an id that a kubelet made up', async (t) => {
  const world = await start();
  for (const name of ['n1', 'n2', 'n3']) await world.join(name, A);
  await world.join('n4', B);
  world.set('fails', 'n3');
  await world.lead();
  await world.advance(120_000);
  t.truthy(world.of('n1'));
  t.is(world.vpcId, undefined, 'it may be two of each');
  world.set(undefined, 'n3');
  world.set('fails', 'n4');
  await world.lead();
  await world.advance(120_000);
  t.is(world.of('n4'), undefined);
  isIn(t, world, A, 'three of four');
  await world.leave('n3');
  await world.leave('n2');
  world.set(undefined, 'n4');
  await world.join('evil', A);
  world.set('made-up', 'evil');
  await world.lead();
  isIn(t, world, A, 'the older one of two');
  await world.stop();
});

test('while no instance is described it is that of more than half of the annotations: one kubelet changes nothing', async (t) => {
  const world = await start();
  for (const name of ['n1', 'n2']) await world.join(name, A, A);
  await world.join('evil', A, B);
  world.set('fails', 'n1', 'n2', 'evil');
  await world.lead();
  isIn(t, world, A, 'three annotations');
  const { clock, admin } = world.scene;
  const body = { metadata: { annotations: { [SEEN]: null } } };
  for (const name of ['n1', 'n2']) await clock.run(admin.patch(NODES, { name }, { kind: 'merge', body }));
  await world.lead();
  isIn(t, world, undefined, 'the only annotation is that of one kubelet');
  const foreign = { metadata: { annotations: { [SEEN]: `${B}/ins-vpcn9` } } };
  for (const name of ['n1', 'n2']) await clock.run(admin.patch(NODES, { name }, { kind: 'merge', body: foreign }));
  await world.lead();
  isIn(t, world, undefined, 'annotations of other instances');
  await world.stop();
});

for (const trouble of ['no-vpc', 'no-addresses'] as const)
  test(`an answer without what counts (${trouble}) replaces none, and is asked for again soon`, async (t) => {
    const world = await start();
    await world.join('n1', A);
    await world.lead();
    const before = world.of('n1');
    t.is(before?.privateIps.length, 1);
    world.set(trouble, 'n1');
    await world.advance(PERIOD_MS + RETRY_MS);
    t.deepEqual(world.of('n1'), before);
    world.set(undefined, 'n1');
    Object.assign(world.scene.host.model.state.instance('ins-vpcn1'), { vpcId: B });
    await world.advance(RETRY_MS);
    t.is(world.of('n1')?.vpcId, B);
    world.set(trouble, 'n1');
    await world.lead();
    t.is(world.of('n1'), undefined, 'to a new leader it is not described');
    await world.stop();
  });

test('Services of a cluster without --vpc-id keep their load balancers over a scale-out in another VPC, restarts and outages', async (t) => {
  const flags = ['--vpc-id=', '--leader-elect=true'];
  const world = await ServiceWorld.start({ flags });
  const ip = await world.join('n1');
  await world.advance(5_000);
  const annotations = { 'tke.cloud.tencent.com/allow-address-change': 'true' };
  await world.create('web', { metadata: { annotations }, spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
  await world.advance(60_000);
  const { loadBalancerId } = world.balancer();
  const { model, faults } = world.world.scene.host;
  for (const name of ['n2', 'n3']) {
    const address = world.world.addInstance(`ins-serv${name}`);
    Object.assign(model.state.instance(`ins-serv${name}`), { vpcId: B });
    const addresses = [{ type: 'InternalIP', address }];
    await world.world.join(name, { providerID: `qcloud:///100003/ins-serv${name}`, addresses });
  }
  await world.advance(60_000);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${ip}:30080 10`] });
  await world.replace();
  await world.advance(660_000);
  t.is(world.balancer().loadBalancerId, loadBalancerId);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${ip}:30080 10`] });
  faults.add({ fault: { kind: 'error', code: 'UnauthorizedOperation' }, actions: ['DescribeInstances'] });
  await world.replace();
  await world.patch('web', { spec: { ports: [{ port: 81, nodePort: 30_081 }] } });
  await world.advance(60_000);
  t.is(world.balancer().loadBalancerId, loadBalancerId);
  t.deepEqual(Object.keys(world.listeners()), ['TCP/81']);
  t.deepEqual(world.events('ServiceRefused'), []);
  await world.stop();
});

test('Services are served by the annotations of Nodes while a leader without a lock is denied cvm:DescribeInstances', async (t) => {
  const world = await ServiceWorld.start({ flags: ['--vpc-id='] });
  for (const name of ['n1', 'n2', 'n3']) await world.join(name);
  await world.advance(5_000);
  await world.create('web');
  await world.advance(60_000);
  await world.patchNode('n3', { metadata: { annotations: { [SEEN]: `${B}/ins-servn3` } } });
  world.world.scene.host.faults.add({
    fault: { kind: 'error', code: 'UnauthorizedOperation' },
    actions: ['DescribeInstances'],
  });
  await world.replace();
  await world.create('later');
  await world.advance(60_000);
  t.is(world.balancers().length, 2);
  t.true(world.balancers().every(({ vpcId }) => vpcId === A));
  t.deepEqual(world.events('ServiceRefused'), []);
  await world.stop();
});

test('an answer that has no VPC takes no target out of service, and the annotation of the Node stays', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web');
  await world.advance(60_000);
  const [before, seen] = [world.listeners(), world.world.node('n1')?.annotations[SEEN]];
  t.is(before['TCP/80']?.length, 1);
  t.is(seen, `${A}/ins-servn1`);
  Object.assign(world.world.scene.host.model.state.instance('ins-servn1'), { vpcId: '' });
  await world.advance(PERIOD_MS + 120_000);
  t.deepEqual(world.listeners(), before);
  t.is(world.world.node('n1')?.annotations[SEEN], seen);
  await world.stop();
});

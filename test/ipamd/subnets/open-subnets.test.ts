import test from 'ava';
import { NODE_SUBNETS_LABEL } from '../../../crd/names.ts';
import { CONFIG_MAPS } from '../../../kube/resource-types.ts';
import { CONFIG_MAP, NodesScene } from '../nodes/nodes-scene.ts';

const SUBNETS = 'TKE_ENI_IPAMD_SUBNET_ID';
const VPC = { TKE_ENI_IPAMD_VPC_ID: 'vpc-0000test' };
const ROUND_MS = 31_000;

/** Runs a scene to its end, come what may. */
async function inScene(
  run: (scene: NodesScene) => Promise<void>,
  onlyNominated: readonly string[] = [],
): Promise<void> {
  const scene = await new NodesScene({ onlyNominatedEniSubnets: onlyNominated }).start();
  try {
    await run(scene);
  } finally {
    await scene.stop();
  }
}

/** Writes the ConfigMap and waits; what it then comes to. */
async function configured(scene: NodesScene, subnets: string, others: Readonly<Record<string, string>> = VPC) {
  await scene.configure({ [SUBNETS]: subnets, ...others });
  await scene.clock.advance(2_000);
  return scene.subnets.config()?.subnetIds;
}

const PLACE = { ofConfig: undefined, ofLabel: [], zone: 'ap-guangzhou-3', vpcId: 'vpc-0000test' };
const idsOf = (scene: NodesScene) => scene.subnets.choicesOf(PLACE).subnets.map(({ subnetId }) => subnetId);

test('openSubnets: follows the ConfigMap without a restart', async (t) => {
  await inScene(async (scene) => {
    t.deepEqual(idsOf(scene), ['subnet-large000']);
    await configured(scene, 'subnet-other000:subnet-large000', { ...VPC, TKE_ENI_IPAMD_ZONE: '100003' });
    t.deepEqual(idsOf(scene), ['subnet-other000', 'subnet-large000']);
    t.deepEqual(scene.events, []);
  });
});

test('openSubnets: a list of zones that contradicts the subnets is an event, once, and changes nothing else', async (t) => {
  await inScene(async (scene) => {
    const zones = 'ap-guangzhou-3:ap-guangzhou-6';
    t.deepEqual(await configured(scene, 'subnet-zone4000:subnet-large000', { ...VPC, TKE_ENI_IPAMD_ZONE: zones }), [
      'subnet-zone4000',
      'subnet-large000',
    ]);
    await scene.clock.advance(10 * ROUND_MS);
    t.deepEqual(scene.events, [
      'ConfigInvalid ConfigMap/tke-eni-ipamd: TKE_ENI_IPAMD_ZONE has no effect and contradicts the subnets: subnet-zone4000 is in ap-guangzhou-4, no subnet is in ap-guangzhou-6; the zone of each subnet counts',
    ]);
    t.deepEqual(scene.subnets.problems(), []);
    const right = 'ap-guangzhou-3:ap-guangzhou-4';
    await configured(scene, 'subnet-zone4000:subnet-large000', { ...VPC, TKE_ENI_IPAMD_ZONE: right });
    t.is(scene.events.length, 1);
  });
});

test('openSubnets: keeps the last good subnets before wrong ones, says so once, and recovers', async (t) => {
  await inScene(async (scene) => {
    const good = ['subnet-large000', 'subnet-zone4000'];
    t.deepEqual(await configured(scene, 'subnet-other000,subnet-large000'), good);
    t.deepEqual(await configured(scene, 'subnet-other000:subnet-nobody00'), good);
    await scene.clock.advance(10 * ROUND_MS);
    t.deepEqual(
      scene.events.map((event) => event.slice(0, event.indexOf(':'))),
      ['ConfigInvalid ConfigMap/tke-eni-ipamd', 'SubnetUnknown ConfigMap/tke-eni-ipamd'],
    );
    await scene.join();
    t.deepEqual(
      scene.factsOf().problems?.map(({ reason }) => reason),
      ['SubnetUnknown'],
    );
    t.deepEqual(await configured(scene, 'subnet-other000'), ['subnet-other000']);
    t.deepEqual(scene.subnets.problems(), []);
    t.deepEqual(scene.factsOf().problems, []);
  });
});

test('openSubnets: the texts about 100,000 wrong subnets are short', async (t) => {
  await inScene(async (scene) => {
    const good = scene.subnets.config()?.subnetIds;
    const many = (prefix: string): string => Array.from({ length: 100_000 }, (_, index) => prefix + index).join(':');
    for (const subnets of [many('subnet-'), many('subnet-abc'), many('no subnet ')]) {
      t.deepEqual(await configured(scene, subnets), good);
      for (const { message } of scene.subnets.problems())
        t.true(message.length < 4_096, `${message.length} characters`);
    }
    await scene.join();
    for (const { message } of scene.factsOf().problems ?? []) t.true(message.length < 4_096);
    t.true(scene.events.length >= 2);
    t.true(scene.events.every((event) => event.length < 4_096));
  });
});

test('openSubnets: keeps the last good subnets when the ConfigMap goes', async (t) => {
  await inScene(async (scene) => {
    await scene.kube.delete(CONFIG_MAPS, CONFIG_MAP);
    await scene.clock.advance(ROUND_MS);
    t.deepEqual(idsOf(scene), ['subnet-large000']);
    t.deepEqual(
      scene.subnets.problems().map(({ reason }) => reason),
      ['ConfigInvalid'],
    );
  });
});

test('openSubnets: needs no VPC in the ConfigMap', async (t) => {
  await inScene(async (scene) => {
    t.deepEqual(await configured(scene, 'subnet-other000', {}), ['subnet-other000']);
  });
});

test('openSubnets: takes a new list when the cloud answers again', async (t) => {
  await inScene(async (scene) => {
    const back = scene.host.faults.add({ fault: { kind: 'reset' }, actions: ['DescribeSubnets'] });
    t.deepEqual(await configured(scene, 'subnet-other000'), ['subnet-large000', 'subnet-zone4000']);
    await scene.clock.advance(10 * ROUND_MS);
    t.deepEqual(idsOf(scene), ['subnet-large000']);
    t.regex(await scene.metrics.registry.metrics(), /^tke_eni_ipamd_subnet_describe_failures_total [1-9]/m);
    back();
    await scene.clock.advance(5 * ROUND_MS);
    t.deepEqual(idsOf(scene), ['subnet-other000']);
  });
});

test('openSubnets: narrows to what the label of a Node or its NodeENIConfig names', async (t) => {
  await inScene(
    async (scene) => {
      await configured(scene, 'subnet-large000:subnet-other000');
      await scene.join('node-1', { metadata: { labels: { [NODE_SUBNETS_LABEL]: 'subnet-other000_subnet-gone0000' } } });
      await scene.join('node-2', { spec: { providerID: 'qcloud:///100003/ins-node0002' } });
      const chosen = (name: string) => scene.factsOf(name).subnets.map(({ subnetId }) => subnetId);
      t.deepEqual(chosen('node-1'), ['subnet-other000']);
      t.deepEqual(
        scene.factsOf('node-1').problems?.map(({ reason, message }) => `${reason} ${message}`),
        ['SubnetUnknown named for this node, and not known to the cloud: subnet-gone0000'],
      );
      t.deepEqual(chosen('node-2'), ['subnet-large000']);
      await scene.patchNec('node-2', { spec: { subnetIDs: ['subnet-other000'] } });
      t.deepEqual(chosen('node-2'), ['subnet-other000']);
    },
    ['subnet-other000'],
  );
});

test('openSubnets: counts what is asked for, and learns from each description', async (t) => {
  await inScene(async (scene) => {
    const free = () => scene.subnets.choicesOf(PLACE).subnets[0]?.freeIps ?? 0;
    const before = free();
    scene.subnets.use('subnet-large000', 10);
    t.is(free(), before - 10);
    scene.subnets.use('subnet-large000', -4);
    t.is(free(), before - 6);
    await scene.clock.advance(ROUND_MS);
    t.is(free(), before);
  });
});

test('openSubnets: blocks a full subnet until a later description shows room, and tells who waits', async (t) => {
  await inScene(async (scene) => {
    let told = 0;
    scene.subnets.subscribe(() => {
      told += 1;
    });
    const isBlocked = () => scene.subnets.choicesOf(PLACE).subnets[0]?.isBlocked;
    const away = scene.host.faults.add({ fault: { kind: 'reset' }, actions: ['DescribeSubnets'] });
    scene.subnets.block('subnet-large000');
    t.true(isBlocked());
    await scene.clock.advance(ROUND_MS);
    t.true(isBlocked());
    t.is(told, 0);
    away();
    await scene.clock.advance(ROUND_MS);
    t.false(isBlocked());
    t.is(told, 1);
  });
});

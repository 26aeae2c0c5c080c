import test from 'ava';
import { CLOUD_FINALIZER, NODE_ANNOTATION, NODE_ENI_CONFIG_ANNOTATION } from '../../../crd/names.ts';
import { createNodeController } from '../../../ipamd/nodes/node-controller.ts';
import type { NodeSettingsFlags } from '../../../ipamd/nodes/node-flags.ts';
import { Renewals } from '../../../ipamd/nodes/renewals.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import { ReleaseBrake } from '../../../kube/release-brake.ts';
import { NODE_ENI_CONFIGS, NODES, PODS } from '../../../kube/resource-types.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { STANDING } from '../support/standing.ts';
import { FLAGS, NodesScene } from './nodes-scene.ts';

const MINUTE_MS = 60_000;
const TAINT = { key: 'tke.cloud.tencent.com/eni-ip-unavailable', value: 'true', effect: 'NoSchedule' };
const OTHER_TAINT = { key: 'example.com/held', effect: 'NoSchedule' };
const ENI_IP = 'tke.cloud.tencent.com/eni-ip';

/** Runs a scene to its end, come what may. */
async function inScene(
  run: (scene: NodesScene) => Promise<void>,
  flags: Partial<NodeSettingsFlags> = {},
): Promise<void> {
  const scene = await new NodesScene(flags).start();
  try {
    await run(scene);
  } finally {
    await scene.stop();
  }
}

async function addPod(scene: NodesScene, name: string, nodeName = 'node-1', podIP = '10.0.9.9'): Promise<void> {
  const metadata = { name, namespace: 'default' };
  const spec = { nodeName, containers: [{ name: 'c', image: 'x' }] };
  await scene.kube.create(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  const status = { phase: 'Running', podIP, podIPs: [{ ip: podIP }] };
  await scene.kube.patch(PODS, metadata, { kind: 'merge', body: { status }, subresource: 'status' });
  await scene.clock.advance(1_000);
}

const eni = (suffix: number, ...ips: readonly string[]) => ({
  eniID: `eni-0000000${suffix}`,
  mac: `20:90:6f:00:00:0${suffix}`,
  primaryIP: `10.0.9.${200 + suffix}`,
  gateway: '10.0.0.1',
  subnetCIDR: '10.0.0.0/16',
  state: 'Attached',
  addresses: ips.map((ip) => ({ ip, assignmentID: `a-${ip}`, state: 'Assigned' })),
});

test('reconcile: makes the NodeENIConfig of a node that joins', async (t) => {
  await inScene(async (scene) => {
    await scene.join('node-1', { metadata: { annotations: { [NODE_ANNOTATION.desiredPodNum]: '12' } } });
    const nec = await scene.nec();
    t.deepEqual(nec?.spec, {
      maxRouteENI: 3,
      maxIPPerENI: 9,
      desiredRouteENIPodNum: 12,
      routeENIIPMinWarmTarget: 5,
      routeENIIPMaxWarmTarget: 7,
      directENIMinWarmTarget: 1,
      directENIMaxWarmTarget: 1,
    });
    t.deepEqual(nec?.metadata.finalizers, [CLOUD_FINALIZER]);
    t.is(nec?.metadata.ownerReferences, undefined);
    t.like(nec?.status, { instanceID: 'ins-node0001', zone: 'ap-guangzhou-3', vpcID: 'vpc-0000test' });
    t.like(scene.factsOf(), { leaving: 'no', floor: 12, initialDemand: 5, maxRouteENI: 3, maxIPPerENI: 9 });
    t.like(scene.factsOf().instance, { instanceId: 'ins-node0001', secondaryEnis: 3, isRunning: true });
    t.deepEqual(
      scene.factsOf().subnets.map(({ subnetId }) => subnetId),
      ['subnet-large000'],
    );
    t.deepEqual(scene.events, []);
  });
});

test('reconcile: tells of a node whose instance nobody knows, once, and holds up no other', async (t) => {
  await inScene(async (scene) => {
    await scene.join('bare', { spec: { providerID: '' } });
    await scene.join('wrong', { spec: { providerID: 'qcloud:///100003/ins-nobody00' } });
    await scene.join();
    await scene.clock.advance(10 * MINUTE_MS);
    t.deepEqual([...scene.necs.keys()], ['node-1']);
    t.deepEqual(
      scene.events.map((event) => event.slice(0, event.indexOf(':'))),
      ['InstanceUnknown Node/bare', 'InstanceUnknown Node/wrong'],
    );
  });
});

test('reconcile: finds the instance of a Node that names none by its address in the VPC', async (t) => {
  await inScene(async (scene) => {
    const { state } = scene.host.model;
    const [ip = ''] = state.enisOf('ins-node0001').flatMap((eni) => [...eni.ips.keys()]);
    const heal = scene.host.faults.add({ fault: { kind: 'http', status: 502 }, actions: ['DescribeInstances'] });
    await scene.join('kubeadm', { spec: { providerID: '' } }, [{ type: 'InternalIP', address: ip }]);
    await scene.join('stranger', { spec: { providerID: '' } }, [{ type: 'InternalIP', address: '10.0.200.1' }]);
    await scene.clock.advance(MINUTE_MS);
    t.is(await scene.nec('kubeadm'), undefined);
    heal();
    await scene.clock.advance(10 * MINUTE_MS);
    t.like((await scene.nec('kubeadm'))?.status, { instanceID: 'ins-node0001' });
    t.is(await scene.nec('stranger'), undefined);
    t.deepEqual(
      scene.events.filter((event) => event.includes('no instance of')).map((event) => event.replace(/^.*, and /, '')),
      ['no instance of vpc-0000test has the address 10.0.200.1; it gets no ENI'],
    );
  });
});

test('reconcile: tells what the cloud forbids, and goes on when it does no more', async (t) => {
  await inScene(async (scene) => {
    const allow = scene.host.faults.add({
      fault: { kind: 'error', code: 'UnauthorizedOperation' },
      actions: ['DescribeInstances'],
    });
    await scene.join();
    t.is(await scene.nec(), undefined);
    t.regex(scene.events.join('\n'), /^Forbidden Node\/node-1: .*UnauthorizedOperation/);
    allow();
    await scene.clock.advance(2 * MINUTE_MS);
    t.truthy(await scene.nec());
  });
});

test('reconcile: takes the taint off when the agent serves, and leaves the others, while the cloud is away', async (t) => {
  await inScene(async (scene) => {
    await scene.join('node-1', { spec: { taints: [OTHER_TAINT, TAINT] } });
    t.deepEqual(await scene.taintsOf(), [OTHER_TAINT, TAINT]);
    scene.host.faults.add({ fault: { kind: 'http', status: 503 } });
    await scene.patchNec('node-1', { spec: { readyResources: [ENI_IP] } });
    t.deepEqual(await scene.taintsOf(), [OTHER_TAINT]);
    const text = await scene.metrics.registry.metrics();
    t.regex(text, /^tke_eni_ipamd_node_taints_total\{kind="taken-off"\} 1$/m);
    await scene.patchNec('node-1', { spec: { readyResources: [] } });
    t.deepEqual(await scene.taintsOf(), [OTHER_TAINT]);
  });
});

test('reconcile: puts taint and condition on where the flags say so, and only on nodes with ENIs', async (t) => {
  const flags = { enableNodeTaint: true, enableNodeCondition: true };
  await inScene(async (scene) => {
    await scene.join();
    await scene.join('super', { metadata: { labels: { 'node.kubernetes.io/instance-type': 'eklet' } } });
    t.deepEqual(await scene.taintsOf(), [TAINT]);
    t.deepEqual([await scene.taintsOf('super'), scene.nodes.get('super')?.eniIpCondition], [undefined, undefined]);
    t.like(scene.nodes.get('node-1')?.eniIpCondition, { status: 'True', reason: 'NotServing' });
    await scene.patchNec('node-1', { spec: { readyResources: [ENI_IP] } });
    t.deepEqual((await scene.taintsOf()) ?? [], []);
    t.like(scene.nodes.get('node-1')?.eniIpCondition, { status: 'False', reason: 'Serving' });
    t.deepEqual(scene.events, []);
  }, flags);
});

test('reconcile: a node that is to serve exclusive ENIs has a condition of its own, others have none', async (t) => {
  const flags = { enableNodeTaint: true, enableNodeCondition: true };
  await inScene(async (scene) => {
    await scene.join();
    t.is(scene.nodes.get('node-1')?.directEniCondition, undefined);
    const label = (value: string | null) =>
      scene.patchNode('node-1', { metadata: { labels: { 'tke.cloud.tencent.com/enable-direct-eni': value } } });
    await label('true');
    t.like(scene.nodes.get('node-1')?.directEniCondition, { status: 'True', reason: 'NotServing' });
    await scene.patchNec('node-1', { spec: { readyResources: [ENI_IP, 'tke.cloud.tencent.com/direct-eni'] } });
    t.like(scene.nodes.get('node-1')?.directEniCondition, { status: 'False', reason: 'Serving' });
    await label(null);
    t.is(scene.nodes.get('node-1')?.directEniCondition, undefined);
    t.like(scene.nodes.get('node-1')?.eniIpCondition, { status: 'False', reason: 'Serving' });
  }, flags);
});

test('reconcile: removes named taints of a node pool once kubelet offers what the agent serves, and no others', async (t) => {
  const named = { key: 'startup-taint.cluster-autoscaler.kubernetes.io/eni-ip-unavailable', effect: 'NoSchedule' };
  const other = { key: 'startup-taint.cluster-autoscaler.kubernetes.io/driver', effect: 'NoSchedule' };
  await inScene(
    async (scene) => {
      await scene.join('node-1', { spec: { taints: [named, TAINT, other] } });
      const status = (allocatable: string) => ({
        status: { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { [ENI_IP]: allocatable } },
      });
      await scene.patchNode('node-1', status('0'), 'status');
      // What a NodeENIConfig tells that outlived the Node of this name.
      await scene.patchNec('node-1', { spec: { readyResources: [ENI_IP] } });
      t.deepEqual(await scene.taintsOf(), [named, other]);
      await scene.patchNode('node-1', status('17'), 'status');
      t.deepEqual(await scene.taintsOf(), [other]);
    },
    { startupTaints: [named.key] },
  );
});

test('reconcile: drains a node that is gone, and takes all when its Pods are gone and the grace is over', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    await addPod(scene, 'p');
    await scene.kube.delete(NODES, { name: 'node-1' });
    await scene.clock.advance(2_000);
    t.truthy((await scene.nec())?.metadata.deletionTimestamp);
    t.deepEqual((await scene.nec())?.metadata.finalizers, [CLOUD_FINALIZER]);
    t.is(scene.factsOf().leaving, 'drain');
    await scene.clock.advance(6 * MINUTE_MS);
    t.is(scene.factsOf().leaving, 'drain');
    const over = { kind: 'merge', body: { status: { phase: 'Failed' } }, subresource: 'status' } as const;
    await scene.kube.patch(PODS, { namespace: 'default', name: 'p' }, over);
    await scene.clock.advance(2_000);
    t.is(scene.factsOf().leaving, 'force');
    const before = scene.woken.length;
    await scene.clock.advance(2 * MINUTE_MS);
    t.true(scene.woken.length > before, 'its supply is looked at again');
  });
});

test('reconcile: serves a node again that was deleted and registers again while its Pods run on', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    await scene.patchNec('node-1', { status: { eniInfos: [eni(1, '10.0.9.9')] } });
    const uid = (await scene.nec())?.metadata.uid;
    await addPod(scene, 'p', 'node-1', '10.0.9.9');
    await scene.kube.delete(NODES, { name: 'node-1' });
    await scene.clock.advance(10 * MINUTE_MS);
    t.is(scene.factsOf().leaving, 'drain');
    await scene.join();
    t.is(scene.factsOf().leaving, 'no');
    t.is((await scene.nec())?.metadata.deletionTimestamp, undefined);
    await scene.kube.delete(NODES, { name: 'node-1' });
    await scene.patchNec('node-1', { status: { eniInfos: [] } });
    t.truthy((await scene.nec())?.metadata.deletionTimestamp);
    t.is((await scene.nec())?.metadata.uid, uid);
  });
});

test('reconcile: does not believe the watch alone that a node is gone', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    const nodes = { ...scene.nodes, isSynced: true, get: () => undefined };
    const { kube, necs, instances, facts, subnets, clock } = scene;
    const events = { record: () => undefined };
    const own = {
      kube,
      nodes,
      necs,
      instances,
      facts,
      subnets,
      lookup: { lookUp: async () => undefined, forget: () => undefined },
      vpcId: () => undefined,
      definitions: STANDING,
      renewals: new Renewals(),
      brake: new ReleaseBrake(clock, FLAGS.nodeReleasePercent),
      config: FLAGS,
      clock,
      log: silentLogger,
      events,
      metrics: createIpamdMetrics(clock, { release: 'test' }),
      enqueueNode: () => undefined,
    };
    await createNodeController(own).reconcile('node-1', scene.ending.signal);
    t.is((await scene.nec())?.metadata.deletionTimestamp, undefined);
  });
});

test('reconcile: drains nothing of a node whose NodeENIConfig a person deleted, and makes it again', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    const first = (await scene.nec())?.metadata.uid;
    await scene.kube.delete(NODE_ENI_CONFIGS, { name: 'node-1' });
    await scene.clock.advance(10 * MINUTE_MS);
    t.like(scene.factsOf(), { leaving: 'no', isRenewed: true });
    t.is((await scene.nec())?.metadata.uid, first);
    await scene.patchNec('node-1', { metadata: { finalizers: [] } });
    t.truthy((await scene.nec())?.metadata.uid);
    t.not((await scene.nec())?.metadata.uid, first);
    t.is(scene.factsOf().leaving, 'no');
  });
});

test('reconcile: drains a node where ENIs are disabled, and makes none again', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    await scene.annotate(NODES, 'node-1', { [NODE_ANNOTATION.disableEni]: 'true' });
    t.is(scene.factsOf().leaving, 'drain');
    await scene.kube.delete(NODE_ENI_CONFIGS, { name: 'node-1' });
    await scene.patchNec('node-1', { metadata: { finalizers: [] } });
    t.is(await scene.nec(), undefined);
    await scene.annotate(NODES, 'node-1', { [NODE_ANNOTATION.disableEni]: null });
    t.is(scene.factsOf().leaving, 'no');
  });
});

test('reconcile: takes all of an instance that is terminated, within minutes', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    await addPod(scene, 'p');
    scene.host.model.state.removeInstance('ins-node0001');
    await scene.clock.advance(4 * MINUTE_MS);
    t.like(scene.factsOf(), { leaving: 'force', instance: undefined });
  });
});

test('reconcile: keeps a node whose kubelet reports although the cloud lists its instance no more, until it falls silent', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    const report = async (status: string) => {
      const body = { status: { conditions: [{ type: 'Ready', status, reason: 'test' }] } };
      await scene.kube.patch(NODES, { name: 'node-1' }, { kind: 'merge', body, subresource: 'status' });
      await scene.clock.advance(2_000);
    };
    await report('True');
    scene.host.model.state.removeInstance('ins-node0001');
    await scene.clock.advance(10 * MINUTE_MS);
    t.like(scene.factsOf(), { leaving: 'no', instance: undefined });
    await report('Unknown');
    t.like(scene.factsOf(), { leaving: 'force', instance: undefined });
  });
});

test('reconcile: takes all of an instance that is stopped for the grace, and serves it again when it runs', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    const instance = scene.host.model.state.instance('ins-node0001');
    instance.state = 'STOPPED';
    await scene.clock.advance(5 * MINUTE_MS);
    t.is(scene.factsOf().leaving, 'no');
    t.false(scene.factsOf().instance?.isRunning);
    await scene.clock.advance(10 * MINUTE_MS);
    t.is(scene.factsOf().leaving, 'force');
    instance.state = 'RUNNING';
    await scene.clock.advance(4 * MINUTE_MS);
    t.is(scene.factsOf().leaving, 'no');
  });
});

test('reconcile: keeps a node while the cloud is away for an hour', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    scene.host.faults.add({ fault: { kind: 'reset' } });
    await scene.clock.advance(60 * MINUTE_MS);
    t.like(scene.factsOf(), { leaving: 'no' });
    t.true(scene.factsOf().instance?.isRunning);
  });
});

test('reconcile: gives the ENIs of an instance back whose name another has now', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    await scene.patchNec('node-1', { status: { eniInfos: [eni(1, '10.0.9.1')] } });
    await scene.kube.delete(NODES, { name: 'node-1' });
    await scene.join('node-1', { spec: { providerID: 'qcloud:///100003/ins-node0002' } });
    await addPod(scene, 'of-the-new', 'node-1', '10.0.77.7');
    t.truthy((await scene.nec())?.metadata.deletionTimestamp);
    t.like(scene.factsOf(), { leaving: 'drain' });
    t.is(scene.factsOf().instance?.instanceId, 'ins-node0001');
    await scene.clock.advance(7 * MINUTE_MS);
    t.is(scene.factsOf().leaving, 'force');
    await scene.patchNec('node-1', { metadata: { finalizers: [] } });
    t.is((await scene.nec())?.status.instanceID, 'ins-node0002');
    t.is(scene.factsOf().leaving, 'no');
  });
});

test('reconcile: follows annotations at once, and tells what it does not take', async (t) => {
  await inScene(async (scene) => {
    const { routeMinWarm, routeMaxWarm, routeMaxAttach, maxIpPerEni } = NODE_ENI_CONFIG_ANNOTATION;
    await scene.join();
    await scene.patchNec('node-1', { status: { eniInfos: [eni(1, '10.0.9.9'), eni(2, '10.0.9.10')] } });
    await addPod(scene, 'p', 'node-1', '10.0.9.9');
    await addPod(scene, 'q', 'node-1', '10.0.9.10');
    await scene.annotate(NODE_ENI_CONFIGS, 'node-1', {
      [routeMinWarm]: '2',
      [routeMaxWarm]: '4',
      [routeMaxAttach]: '1',
      [maxIpPerEni]: '6',
    });
    const warm = scene.factsOf();
    t.like(warm, { initialDemand: 2, warmTarget: 2, maxRouteENI: 3, maxIPPerENI: 6 });
    t.like((await scene.nec())?.spec, { maxRouteENI: 3, maxIPPerENI: 6, routeENIIPMinWarmTarget: 5 });
    t.deepEqual(warm.problems, [
      {
        reason: 'AnnotationInvalid',
        message: `metadata.annotations.${routeMaxAttach}: expected a number not below what is in use, 2, got "1"`,
      },
    ]);
    t.deepEqual(scene.events, [
      'SucceedSetRouteENIWarmTarget Node/node-1: warm target of shared ENIs: minimum/maximum 2/4',
    ]);
    await scene.annotate(NODE_ENI_CONFIGS, 'node-1', {
      [routeMinWarm]: null,
      [routeMaxAttach]: '2',
      [maxIpPerEni]: null,
    });
    t.like(scene.factsOf(), { initialDemand: 5, maxRouteENI: 2, maxIPPerENI: 9 });
    t.like((await scene.nec())?.spec, { maxRouteENI: 2, maxIPPerENI: 9 });
    t.regex(scene.factsOf().problems?.[0]?.message ?? '', /route-eni-ip-min-warm-target: expected a value/);
  });
});

test('reconcile: Pods may keep addresses on a node as soon as it has a podCIDR', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    t.is((await scene.nec())?.spec?.enableStaticIP, undefined);
    await scene.kube.patch(
      NODES,
      { name: 'node-1' },
      { kind: 'merge', body: { spec: { podCIDR: '192.168.0.64/26' } } },
    );
    await scene.clock.advance(2_000);
    t.is((await scene.nec())?.spec?.enableStaticIP, true);
    // A person may turn it off for the node.
    await scene.patchNec('node-1', { spec: { enableStaticIP: false } });
    t.is((await scene.nec())?.spec?.enableStaticIP, false);
  });
});

test('reconcile: follows an instance that was resized, and leaves what a person wrote', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    await scene.patchNec('node-1', { spec: { maxIPPerENI: 4 } });
    const instance = scene.host.model.state.instance('ins-node0001');
    Object.assign(instance, { cores: 8, instanceType: 'S5.8CORE' });
    await scene.clock.advance(4 * MINUTE_MS);
    t.like((await scene.nec())?.spec, { maxRouteENI: 5, maxIPPerENI: 4 });
    t.is((await scene.nec())?.status.instanceType, 'S5.8CORE');
  });
});

test('reconcile: takes the table for an instance type that nobody knows, and says so', async (t) => {
  await inScene(async (scene) => {
    scene.host.faults.add({
      fault: { kind: 'error', code: 'InvalidParameterValue' },
      actions: ['DescribeNetworkInterfaceLimit'],
    });
    await scene.join();
    t.like((await scene.nec())?.spec, { maxRouteENI: 3, maxIPPerENI: 9 });
    t.deepEqual(
      scene.factsOf().problems?.map(({ reason }) => reason),
      ['InstanceTypeUnknown'],
    );
  });
});

test('reconcile: has security groups set again where that is asked for, once', async (t) => {
  const flags = { enableSecurityGroups: true, securityGroups: ['sg-aaaa0001', 'sg-aaaa0002'] };
  await inScene(async (scene) => {
    await scene.join();
    const withGroups = { ...eni(1), securityGroups: flags.securityGroups, fromTheFuture: 7 };
    await scene.patchNec('node-1', { status: { eniInfos: [withGroups] } });
    t.deepEqual(scene.factsOf().securityGroups, flags.securityGroups);
    await scene.annotate(NODES, 'node-1', { [NODE_ANNOTATION.syncSecurityGroups]: 'true' });
    t.is((await scene.nec())?.status.eniInfos?.[0]?.securityGroups, undefined);
    t.is((await scene.nec())?.status.eniInfos?.[0]?.mac, withGroups.mac);
    await scene.clock.advance(5 * MINUTE_MS);
    t.is(scene.nodes.get('node-1')?.annotations[NODE_ANNOTATION.syncSecurityGroups], 'true');
    await scene.patchNec('node-1', { status: { eniInfos: [withGroups] } });
    t.is(scene.nodes.get('node-1')?.annotations[NODE_ANNOTATION.syncSecurityGroups], undefined);
    t.is((await scene.nec())?.metadata.annotations?.[NODE_ANNOTATION.syncSecurityGroups], undefined);
    t.deepEqual((await scene.nec())?.status.eniInfos?.[0]?.securityGroups, flags.securityGroups);
    await scene.annotate(NODES, 'node-1', { [NODE_ANNOTATION.disableSecurityGroups]: 'yes' });
    t.deepEqual(scene.factsOf().securityGroups, []);
  }, flags);
});

test('viewOf: names an address that is the gateway of another ENI', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    const other = { ...eni(2), primaryIP: '10.1.0.2', gateway: '10.1.0.1', subnetCIDR: '10.1.0.0/24' };
    const wide = { ...eni(1, '10.1.0.1', '10.1.0.3'), subnetCIDR: '10.0.0.0/8' };
    await scene.patchNec('node-1', { status: { eniInfos: [wide, other] } });
    t.deepEqual(
      scene
        .factsOf()
        .problems?.filter(({ reason }) => reason === 'ObjectInvalid')
        .map(({ message }) => message),
      ['the node cannot take: 10.1.0.1 of eni-00000001 is the gateway of 10.1.0.0/24'],
    );
  });
});

test('viewOf: knows nothing of an object that nothing can be read from', async (t) => {
  await inScene(async (scene) => {
    await scene.join();
    const entry = scene.necs.get('node-1');
    if (entry === undefined) throw new Error('no entry');
    const answer = scene.facts.viewOf('node-1', { ...entry, decoded: undefined });
    t.like(answer, { kind: 'unknown', problem: { reason: 'ObjectInvalid' } });
  });
});

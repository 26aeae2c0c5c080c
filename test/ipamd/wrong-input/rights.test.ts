import test from 'ava';
import { NODES } from '../../../kube/resource-types.ts';
import { GOOD, inScene, WrongScene } from './wrong-scene.ts';

const TAINT = { key: 'tke.cloud.tencent.com/eni-ip-unavailable', value: 'true', effect: 'NoSchedule' };

type Right = {
  readonly verb: string;
  readonly resource: string;
  /** What makes ipamd ask for it. */
  readonly when: (scene: WrongScene) => Promise<void>;
  /** Whether nodes join meanwhile. */
  readonly othersGoOn: boolean;
};

const nothing = async (): Promise<void> => undefined;
const joinTainted = async (scene: WrongScene): Promise<void> => {
  await scene.join('tainted');
  await scene.patch('node', 'tainted', { spec: { taints: [TAINT] } });
  await scene.awaitWarm('tainted');
  await scene.patch('nec', 'tainted', { spec: { readyResources: ['tke.cloud.tencent.com/eni-ip'] } });
};
const runPod = async (scene: WrongScene): Promise<void> => {
  const [address] = scene.assigned('n1');
  await scene.runPod('p1', 'n1', address?.ip ?? '');
};
const leave = async (scene: WrongScene): Promise<void> => {
  // Without any Node no release is believed.
  await scene.join('stays', { instanceId: 'ins-nobody02', labels: { 'node.kubernetes.io/instance-type': 'eklet' } });
  await scene.clock.run(scene.kube.delete(NODES, { name: 'n1' }));
};

/** The rights that an ipamd at work uses, taken away in turn. */
const RIGHTS: readonly Right[] = [
  {
    verb: 'update',
    resource: 'nodeeniconfigs',
    when: (scene) => scene.patch('nec', 'n1', { spec: { desiredRouteENIIP: 12 } }),
    othersGoOn: false,
  },
  { verb: 'create', resource: 'nodeeniconfigs', when: (scene) => scene.join('n2'), othersGoOn: false },
  { verb: 'delete', resource: 'nodeeniconfigs', when: leave, othersGoOn: true },
  {
    verb: 'list',
    resource: 'nodeeniconfigs',
    when: async (scene) => scene.server.cutWatches('ipamd'),
    othersGoOn: false,
  },
  {
    verb: 'watch',
    resource: 'nodeeniconfigs',
    when: async (scene) => scene.server.cutWatches('ipamd'),
    othersGoOn: true,
  },
  { verb: 'watch', resource: 'nodes', when: async (scene) => scene.server.cutWatches('ipamd'), othersGoOn: true },
  { verb: 'list', resource: 'pods', when: async (scene) => scene.server.cutWatches('ipamd'), othersGoOn: true },
  { verb: 'list', resource: 'configmaps', when: async (scene) => scene.server.cutWatches('ipamd'), othersGoOn: true },
  { verb: 'patch', resource: 'nodes', when: joinTainted, othersGoOn: true },
  { verb: 'create', resource: 'vpcips', when: runPod, othersGoOn: true },
  { verb: 'create', resource: 'vpcipclaims', when: runPod, othersGoOn: true },
  { verb: 'update', resource: 'configmaps', when: nothing, othersGoOn: false },
];

for (const { verb, resource, when, othersGoOn } of RIGHTS) {
  test(`ipamd may not ${verb} ${resource}: event, metric and log name the right; over when it is granted`, async (t) => {
    await inScene(
      GOOD,
      async (scene) => {
        await scene.join('n1');
        await scene.awaitWarm('n1');
        const grant = scene.forbid(verb, resource);
        await when(scene);
        const says = new RegExp(`tke-eni-ipamd may not ${verb} ${resource}; grant it to its ClusterRole: `);
        await scene.assertNamed(t, { reason: 'Forbidden', says, name: `${verb} ${resource}` });
        if (othersGoOn) await scene.assertOthersGoOn(t);
        grant();
        await scene.assertOthersGoOn(t);
        await scene.untilGone(`Forbidden ${verb} ${resource}`);
        t.false((await scene.problems()).includes(`Forbidden ${verb} ${resource}`));
      },
      ['--node-release-grace=10s', '--pod-records=all'],
    );
  });
}

test('ipamd may not create events: metric and log name the right, and everything else goes on', async (t) => {
  await inScene(GOOD, async (scene) => {
    scene.forbid('create', 'events');
    await scene.join('n1', { instanceId: 'ins-nobody01' });
    await scene.assertOthersGoOn(t);
    await scene.clock.advance(60_000);
    // ipamd became the leader while it still had the right.
    t.deepEqual(
      scene.events().filter((event) => !event.startsWith('LeaderElection ')),
      [],
    );
    t.true((await scene.problems()).includes('Forbidden create events'));
    t.true((await scene.problems()).includes('InstanceUnknown n1'));
  });
});

test('ipamd may not patch nodes/status: event and metric name the right, and everything else goes on', async (t) => {
  await inScene(
    GOOD,
    async (scene) => {
      scene.forbid('patch', 'nodes/status');
      await scene.assertOthersGoOn(t);
      await scene.assertNamed(t, {
        reason: 'Forbidden',
        says: /may not patch nodes\/status/,
        name: 'patch nodes/status',
      });
    },
    ['--enable-node-condition'],
  );
});

for (const verb of ['get', 'create'] as const) {
  test(`ipamd may not ${verb} the lock: it does not lead, and says so`, async (t) => {
    const scene = new WrongScene();
    await scene.configure(GOOD);
    const grant = scene.forbid(verb, 'configmaps');
    await scene.start([], false);
    await scene.assertNamed(t, {
      reason: 'Forbidden',
      says: new RegExp(`may not ${verb} configmaps`),
      name: `${verb} configmaps`,
    });
    t.false(scene.ipamd?.isLeading ?? true);
    grant();
    await scene.assertOthersGoOn(t);
    await scene.close();
  });
}

for (const verb of ['get', 'create'] as const) {
  test(`ipamd may not ${verb} definitions that are not there: readiness, event and metric name the right and the way out`, async (t) => {
    const scene = new WrongScene();
    await scene.configure(GOOD);
    const grant = scene.forbid(verb, 'customresourcedefinitions');
    await scene.start([], false);
    const right = `${verb} customresourcedefinitions`;
    await scene.assertNamed(t, { reason: 'Forbidden', says: new RegExp(`may not ${right}`), name: right });
    t.regex(scene.ipamd?.readiness() ?? '', /customresourcedefinitions/);
    t.true((await scene.problems()).includes('DefinitionsMissing customresourcedefinitions'));
    grant();
    await scene.assertOthersGoOn(t);
    await scene.close();
  });
}

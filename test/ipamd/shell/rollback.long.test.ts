// The release before takes over in the middle of each kind of call that it has, and gives back in the middle of the next one. It has no
// reservations of addresses.
import test from 'ava';
import { NODE_ANNOTATION, POD_ANNOTATION } from '../../../crd/names.ts';
import { NODE_ENI_CONFIGS, NODES } from '../../../kube/resource-types.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { StaticCluster } from '../guests/static/static-cluster.ts';
import { type FormerIpamd, openFormerIpamd } from '../support/former-ipamd.ts';
import type { ShellScene } from './shell-scene.ts';

const ACTIONS = [
  'CreateNetworkInterface',
  'AttachNetworkInterface',
  'AssignPrivateIpAddresses',
  'MigratePrivateIpAddress',
  'UnassignPrivateIpAddresses',
  'ModifyNetworkInterfaceAttribute',
  'DetachNetworkInterface',
  'DeleteNetworkInterface',
  'AllocateAddresses',
  'AssociateAddress',
  'DisassociateAddress',
  'ReleaseAddresses',
] as const;
const EIP = { [POD_ANNOTATION.eipAttributes]: JSON.stringify({ InternetMaxBandwidthOut: 20 }) };
const LIMIT_MS = 1_800_000;

const former = await openFormerIpamd();

/** Starts the one or the other release in a scene, by turns. */
function inTurns(scene: ShellScene, old: FormerIpamd, isFormerFirst: boolean) {
  const today = scene.start;
  let starts = isFormerFirst ? 1 : 0;
  const start: ShellScene['start'] = async (options = {}) => {
    starts += 1;
    if (starts % 2 === 1) return await today(options);
    const { name = 'ipamd', flags = [], log = silentLogger } = options;
    const argv = ['--clusterid=cls-shell001', '--region=ap-guangzhou', '--metrics-address=', ...flags];
    const outcome = old.readIpamdConfig({ argv, env: {}, readFile: () => '' });
    if (outcome.kind !== 'run') throw new Error(`got ${outcome.kind}`);
    const { clock, host, server } = scene;
    const random = seededRandom(starts);
    const metrics = old.createIpamdMetrics(clock, { release: 'former' });
    const api = old.api(createInProcessApi(host));
    const cloud = old.createTencentCloud({ api, clock, random, observer: metrics.cloud });
    let made = 0;
    const ids = {
      next: () => `f${starts.toString(16).padStart(3, '0')}${(++made).toString(16).padStart(12, '0')}`,
      now: () => new Date(clock.nowMs()).toISOString(),
    };
    const kube = old.kube(server.client({ userAgent: name }));
    const own = { kube, cloud, metrics, release: 'former', identity: name };
    return await old.startIpamd(outcome.config, { clock, log, random, ids, ...own });
  };
  Object.assign(scene, { start });
}

for (const action of ACTIONS)
  for (const moment of ['before', 'after'] as const)
    for (const isFormerFirst of [false, true]) {
      const way = isFormerFirst ? 'from the release before to this one, and back' : 'to the release before, and back';
      const run = former === undefined ? test.skip : test;
      run(`${way}: in the middle of ${action}, ${moment} its effect`, async (t) => {
        t.timeout(LIMIT_MS);
        if (former === undefined) return t.fail();
        const flags = ['--enable-security-groups=true', '--security-groups=sg-aaaaaaaa', '--ip-min-warm-target=2'];
        const cluster = await StaticCluster.make({ a: 3, b: 3 }, [...flags, '--ip-max-warm-target=3']);
        const { scene } = cluster;
        inTurns(scene, former, isFormerFirst);
        let changes = 0;
        let isDue = false;
        scene.host.gate = async (request) => {
          if (isDue || changes >= 2 || request.action !== action || request.moment !== moment) return 'go';
          cluster.cutOff();
          isDue = true;
          return 'lose';
        };
        const until = async (what: string, holds: () => boolean): Promise<void> => {
          const step = async (): Promise<void> => {
            await cluster.step();
            if (!isDue) return;
            await cluster.killIpamd();
            changes += 1;
            isDue = false;
          };
          if (!(await scene.clock.until(holds, LIMIT_MS, step))) throw new Error(`${what}: ${cluster.why('web-0')}`);
        };
        const start = async (name: string, node: string, more = {}): Promise<string> => {
          const uid = await cluster.createPod(name, node, more);
          await until(`${name} has an address`, () => cluster.ipOf(uid) !== undefined);
          return cluster.ipOf(uid) ?? '';
        };
        const { state } = scene.host.model;
        await cluster.startIpamd();
        // Their addresses keep the ENIs.
        for (const node of ['a', 'b']) await start(`stays-${node}`, node);
        const ip = await start('web-0', 'a', EIP);
        await until('it has an EIP', () => [...state.eips.values()].some(({ status }) => status === 'BIND_ENI'));
        for (const node of ['b', 'a']) {
          await cluster.deletePod('web-0');
          t.is(await start('web-0', node, EIP), ip);
        }
        for (const groups of [['sg-bbbbbbbb'], ['sg-aaaaaaaa']]) {
          const body = { spec: { securityGroups: groups } };
          await cluster.run(scene.kube.patch(NODE_ENI_CONFIGS, { name: 'a' }, { kind: 'merge', body }));
          const ofNode = () =>
            (cluster.statusOf('a').eniInfos ?? []).every((eni) => eni.securityGroups?.join() === groups.join());
          await until('its ENIs have them', ofNode);
        }
        await cluster.deletePod('web-0');
        await cluster.deleteClaim('web-0');
        await until('its claim has ended', () => cluster.claim('web-0') === undefined);
        for (const name of ['stays-a', 'stays-b']) {
          await cluster.deletePod(name);
          await cluster.deleteClaim(name);
        }
        await until('the claims have ended', () => cluster.objects('vpcipclaims').length === 0);
        for (const name of ['a', 'b']) {
          const body = { metadata: { annotations: { [NODE_ANNOTATION.disableEni]: 'true' } } };
          await cluster.run(scene.kube.patch(NODES, { name }, { kind: 'merge', body }));
        }
        const own = () => [...state.enis.values()].filter(({ tags }) => tags['tke-created-eni'] === 'true');
        await until('nothing is left', () => own().length === 0 && state.eips.size === 0);
        await until('no call is on record', () =>
          ['a', 'b'].every((node) => (cluster.statusOf(node).intents ?? []).length === 0),
        );
        t.true(changes > 0, 'it was in the middle of it');
        await cluster.stopIpamd();
      });
    }

test.after.always('the sources of the release before', () => former?.close());

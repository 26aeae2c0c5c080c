import test, { type ExecutionContext } from 'ava';
import { readCertificateSet } from '../../../kube/certificates/certificate-set.ts';
import { type CertificateKeeper, openCertificateKeeper } from '../../../kube/certificates/keep-certificates.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { KubeError } from '../../../kube/kube-error.ts';
import { SECRETS } from '../../../kube/resource-types.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { type KubeScene, withKubeScene } from '../kube-scene.ts';

const REF = { namespace: 'kube-system', name: 'ours' };
const EMPTY: KubeObject = { apiVersion: 'v1', kind: 'Secret', metadata: REF };
const DAY_MS = 86_400_000;

type Scene = KubeScene & { readonly clock: VirtualClock; open(): CertificateKeeper; secret(): Promise<KubeObject> };

async function withKeeper(t: ExecutionContext, run: (scene: Scene) => Promise<void>, first?: object): Promise<void> {
  await withKubeScene({}, async (kube) => {
    const clock = new VirtualClock();
    await kube.client.create(SECRETS, { ...EMPTY, ...first });
    const wanted = { program: 'ours', names: ['ours.kube-system.svc'] };
    const open = () => openCertificateKeeper({ kube: kube.client, secret: REF, wanted, clock, log: silentLogger });
    const secret = async () => {
      const found = await kube.client.get(SECRETS, REF);
      if (found === undefined) throw new Error('no Secret');
      return found;
    };
    await run({ ...kube, clock, open, secret });
  });
  t.pass();
}

test('certificate keeper: replicas that begin at once use the same certificates, each time', (t) =>
  withKeeper(t, async ({ clock, open, secret }) => {
    const replicas = [open(), open(), open(), open()];
    for (const days of [0, 61, 200, 8 * 365, 365, 20 * 365]) {
      clock.stepWall(days * DAY_MS);
      const sets = await Promise.all(replicas.map((one) => one.sync()));
      const { resourceVersion } = (await secret()).metadata;
      for (const set of [...sets, await open().sync()]) t.deepEqual(set, sets[0], `${days}`);
      t.is((await secret()).metadata.resourceVersion, resourceVersion, 'another look writes nothing');
    }
  }));

test('certificate keeper: leaves a Secret of another owner alone, and says what to do', (t) =>
  withKeeper(
    t,
    async ({ open, secret }) => {
      const before = await secret();
      const error = await t.throwsAsync(open().sync(), { code: 'FOREIGN' });
      t.regex(
        error?.message ?? '',
        /kube-system\/ours has data that ours did not write.*name another one by --tls-secret/,
      );
      t.deepEqual(await secret(), before);
    },
    { data: { 'tls.crt': 'YQ==', 'tls.key': 'YQ==' } },
  ));

test('certificate keeper: repairs a damaged Secret, and still trusts the authority before it', (t) =>
  withKeeper(t, async ({ client, open, secret }) => {
    const keeper = open();
    const first = await keeper.sync();
    await client.update(SECRETS, { ...(await secret()), data: { 'ca.crt': 'YQ==' } });
    const second = await keeper.sync();
    t.not(second.authority.cert, first.authority.cert);
    t.true(second.earlier.includes(first.authority.cert));
    t.deepEqual(await open().sync(), second);
  }));

test('certificate keeper: goes on with its certificates when the Secret is emptied, or was deleted and applied again', (t) =>
  withKeeper(t, async ({ client, open, secret }) => {
    const keeper = open();
    const first = await keeper.sync();
    await client.update(SECRETS, { ...(await secret()), data: {} });
    t.deepEqual(await keeper.sync(), first);
    t.deepEqual(readCertificateSet((await secret())['data']), first);
    await client.delete(SECRETS, REF);
    const error = await t.throwsAsync(keeper.sync(), { code: 'MISSING' });
    t.regex(
      error?.message ?? '',
      /is not there: apply the manifests or the chart again, or: kubectl -n kube-system create secret generic ours/,
    );
    await client.create(SECRETS, EMPTY);
    t.deepEqual(await keeper.sync(), first);
    t.deepEqual(await open().sync(), first);
  }));

for (const code of ['CONFLICT', 'TIMEOUT', 'FORBIDDEN'] as const)
  test(`certificate keeper: what has ended is replaced though the first write failed: ${code}`, (t) =>
    withKeeper(t, async ({ client, clock, secret, open }) => {
      const ended = await open().sync();
      clock.stepWall(20 * 365 * DAY_MS);
      const { resourceVersion } = (await secret()).metadata;
      let failures = 1;
      const update: typeof client.update = async (type, object, signal) => {
        failures -= 1;
        if (failures >= 0) throw new KubeError({ code, request: 'PUT secrets', text: 'not now' });
        return await client.update(type, object, signal);
      };
      const kube = { get: client.get, update };
      const wanted = { program: 'ours', names: ['ours.kube-system.svc'] };
      const keeper = openCertificateKeeper({ kube, secret: REF, wanted, clock, log: silentLogger });
      await keeper.sync().catch(() => undefined);
      t.not((await keeper.sync()).server.cert, ended.server.cert);
      t.not((await secret()).metadata.resourceVersion, resourceVersion);
    }));

const SKEWS = [
  ['56 years behind', -56 * 365],
  ['two days behind', -2],
  ['100 days ahead', 100],
  ['11 years ahead', 11 * 365],
] as const;

for (const [what, days] of SKEWS)
  test(`certificate keeper: a replica whose clock is ${what} replaces nothing, whichever looks first`, async (t) => {
    const right = new VirtualClock();
    const wrong = new VirtualClock();
    wrong.stepWall(days * DAY_MS);
    await withKubeScene({ api: { nowMs: () => right.nowMs() } }, async ({ client }) => {
      await client.create(SECRETS, EMPTY);
      const wanted = { program: 'ours', names: ['ours.kube-system.svc'], client: 'kube-scheduler' };
      const open = (clock: VirtualClock) =>
        openCertificateKeeper({ kube: client, secret: REF, wanted, clock, log: silentLogger });
      const [good, bad] = [open(right), open(wrong)];
      const first = await good.sync();
      const version = async () => (await client.get(SECRETS, REF))?.metadata.resourceVersion;
      const written = await version();
      for (let look = 0; look < 5; look += 1) {
        t.deepEqual(await bad.sync(), first);
        t.deepEqual(await good.sync(), first);
      }
      t.is(await version(), written);
      // Time goes on: the certificate of the server is renewed once, by whoever sees it first.
      for (const clock of [right, wrong]) clock.stepWall(61 * DAY_MS);
      const renewed = await good.sync();
      t.not(renewed.server.cert, first.server.cert);
      t.is(renewed.authority.cert, first.authority.cert);
      t.deepEqual(await bad.sync(), renewed);
    });
  });

const fights = test.macro(async (t, days: number) => {
  const right = new VirtualClock();
  const wrong = new VirtualClock();
  wrong.stepWall(days * DAY_MS);
  await withKubeScene({}, async ({ client }) => {
    await client.create(SECRETS, EMPTY);
    const wanted = { program: 'ours', names: ['ours.kube-system.svc'] };
    const open = (clock: VirtualClock) => {
      const kube = { get: client.get, update: client.update, serverMs: () => clock.nowMs() };
      return openCertificateKeeper({ kube, secret: REF, wanted, clock, log: silentLogger });
    };
    const keepers = [open(right), open(wrong)];
    const served = new Set<string>();
    for (let look = 0; look < 20; look += 1)
      for (const keeper of keepers) served.add((await keeper.sync()).server.cert);
    t.true(served.size <= 3, `${served.size} certificates`);
  });
});
test('certificate keeper: two replicas, each with an API server of its own clock, do not fight: 100 days', fights, 100);
test('certificate keeper: the same: 11 years', fights, 11 * 365);
test('certificate keeper: the same: 56 years back', fights, -56 * 365);

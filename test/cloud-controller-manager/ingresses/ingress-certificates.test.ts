import test from 'ava';
import { recordOf } from '../../../runtime/json.ts';
import { newOwn } from './certificate-world.ts';
import { IngressWorld, ruleOf } from './ingress-world.ts';

const HOST = 'a.example.com';
const DONE_MS = 60_000;
/** A Secret is read each minute, sooner or later by a quarter. */
const READ_MS = 80_000;
const OWN = newOwn(HOST);
const TLS = { tls: [{ hosts: [HOST], secretName: 'tls' }] };
const PAIR = { 'tls.crt': OWN.chain, 'tls.key': OWN.privateKey.reveal() };

/** Rules of two hosts, one of them with a certificate. */
function twoHosts() {
  return { rules: [...ruleOf('/', HOST).rules, ...ruleOf('/', 'plain.example.com').rules], ...TLS };
}

test('a Secret that is missing is an event and a metric; the other host is served, and this one when it is made', async (t) => {
  const world = await IngressWorld.start();
  const ip = await world.serve('web');
  await world.create('site', { spec: twoHosts() });
  await world.advance(DONE_MS);
  const plain = { 'HTTP:80 plain.example.com/': [`${ip}:8080 10`] };
  t.deepEqual(world.rules(), plain);
  t.regex(world.events('CertificateRefused').join(), /Secret "tls": there is no such Secret/);
  t.regex(await world.services.world.metrics(), /ingress_problems\{reason="CertificateRefused"\} 1/);
  await world.makeSecret('tls', PAIR, 'kubernetes.io/tls');
  await world.advance(READ_MS + DONE_MS);
  t.deepEqual(world.rules(), { ...plain, [`HTTPS:443 ${HOST}/`]: [`${ip}:8080 10`] });
  const metrics = await world.services.world.metrics();
  t.notRegex(metrics, /ingress_problems\{/);
  t.regex(metrics, /certificate_expiry_timestamp_seconds 17/);
  t.regex(metrics, /ingress_secrets\{state="found"\} 1/);
  t.is(world.events('CertificateRefused').length, 1);
  await world.stop();
  t.notRegex(await world.services.world.metrics(), /certificate_expiry_timestamp_seconds 17|ingress_secrets\{/);
});

test('while the cloud does not answer about certificates, all else of the Ingress follows', async (t) => {
  const world = await IngressWorld.start();
  const { faults, model } = world.services.world.scene.host;
  const end = faults.add({
    fault: { kind: 'error', code: 'InternalError' },
    actions: ['DescribeCertificates', 'UploadCertificate'],
  });
  const first = await world.serve('web');
  await world.makeSecret('tls', PAIR, 'kubernetes.io/tls');
  await world.create('site', { spec: twoHosts() });
  await world.advance(3 * DONE_MS);
  const rule = 'HTTP:80 plain.example.com/';
  t.deepEqual(world.rules(), { [rule]: [`${first}:8080 10`] });
  const second = await world.pods.run('web', 'web-1', { node: 'n1' });
  await world.advance(DONE_MS);
  t.deepEqual(world.rules()[rule], [`${first}:8080 10`, `${second}:8080 10`].toSorted());
  t.true(world.events('SyncLoadBalancerFailed').some((text) => text.includes('"a.example.com"')));
  end();
  await world.advance(2 * DONE_MS);
  t.is(Object.keys(world.rules()).length, 2);
  t.is(model.state.certificates.all().length, 1);
  await world.stop();
});

test('a Secret that the API server does not give is an event after some minutes, until it is read', async (t) => {
  const world = await IngressWorld.start();
  const ip = await world.serve('web');
  await world.makeSecret('tls', PAIR, 'kubernetes.io/tls');
  const action = { kind: 'status', code: 500 } as const;
  const heal = world.services.world.scene.server.api.faults.add({ resources: ['secrets'], action });
  await world.create('site', { spec: twoHosts() });
  await world.advance(2 * DONE_MS);
  t.deepEqual(world.rules(), { 'HTTP:80 plain.example.com/': [`${ip}:8080 10`] });
  t.deepEqual(world.events('CertificateRefused'), []);
  await world.advance(2 * DONE_MS);
  t.regex(world.events('CertificateRefused').join(), /^Secret "tls": the API server does not say .*; look at the log/);
  heal();
  await world.advance(3 * DONE_MS);
  t.is(Object.keys(world.rules()).length, 2);
  t.notRegex(await world.services.world.metrics(), /ingress_problems\{/);
  await world.stop();
});

test('of a group only the Ingress that names a Secret has the event about its certificate', async (t) => {
  const world = await IngressWorld.start();
  const fault = { kind: 'error', code: 'FailedOperation.CertificateInvalid' } as const;
  world.services.world.scene.host.faults.add({ fault, actions: ['UploadCertificate'] });
  await world.serve('web');
  await world.makeSecret('tls', PAIR, 'kubernetes.io/tls');
  const annotations = {
    'kubernetes.io/ingress.existLbId': await world.services.buy(),
    'ingress.cloud.tencent.com/enable-group': 'true',
  };
  await world.create('plain', { annotations, spec: ruleOf('/', 'plain.example.com') });
  await world.create('secure', { annotations, spec: { ...ruleOf('/', HOST), ...TLS } });
  await world.advance(2 * DONE_MS);
  const refused = world.services.world.scene.server
    .objects('events')
    .filter(({ reason }) => reason === 'CertificateRefused')
    .map(({ involvedObject }) => recordOf(involvedObject)['name']);
  t.deepEqual(refused, ['secure']);
  await world.stop();
});

test('no key is in an object of the cluster, but in its Secret', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.makeSecret('tls', PAIR, 'kubernetes.io/tls');
  await world.create('site', { spec: twoHosts() });
  await world.advance(2 * DONE_MS);
  const { server } = world.services.world.scene;
  const objects = [...server.objects('events'), world.ingress('site')];
  t.true(objects.length > 2);
  const text = `${JSON.stringify(objects)}${await world.services.world.metrics()}`;
  const [, line = ''] = OWN.privateKey.reveal().split('\n');
  const encoded = Buffer.from(PAIR['tls.key']).toString('base64').slice(60, 100);
  t.false(text.includes(line) || text.includes(encoded) || text.includes('PRIVATE KEY'));
  await world.stop();
});

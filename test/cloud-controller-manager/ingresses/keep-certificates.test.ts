import { inspect } from 'node:util';
import test from 'ava';
import type { OwnCertificate } from '../../../cloud-controller-manager/ingresses/own-certificate.ts';
import { certificateOwnerOf } from '../../../cloud-controller-manager/ingresses/owned-certificate.ts';
import { placeCertificates } from '../../../cloud-controller-manager/ingresses/place-certificates.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { CertificateWorld, CLUSTER, newOwn, uploadsOf } from './certificate-world.ts';

const MINUTE_MS = 60_000;
const UNIT = 'default/web';
const ONE = newOwn('a.example');
const TWO = newOwn('b.example');
const TAGS = (hash: string, cluster = CLUSTER) => ({
  'tke-clusterId': cluster,
  'tke-eni-owner': certificateOwnerOf(cluster, hash),
});

test('ensure: one upload for each chain, whoever uses it; the next process finds it', async (t) => {
  const world = new CertificateWorld();
  const first = world.begin();
  const both = await world.clock.run(
    Promise.all([
      first.keeper.ensure(UNIT, uploadsOf(ONE, TWO), world.contextOf()),
      first.keeper.ensure('default/other', uploadsOf(ONE), world.contextOf()),
    ]),
  );
  const [a, b] = world.ids();
  t.deepEqual(
    both[0].ids,
    new Map([
      [ONE.hash, a ?? ''],
      [TWO.hash, b ?? ''],
    ]),
  );
  t.deepEqual(both[1].ids, new Map([[ONE.hash, a ?? '']]));
  const next = world.begin();
  world.host.forget();
  const again = await world.clock.run(next.keeper.ensure(UNIT, uploadsOf(ONE, TWO), world.contextOf()));
  t.deepEqual(again, both[0]);
  t.deepEqual(world.host.counts(), { DescribeCertificates: 1 });
  t.is(world.ids().length, 2);
});

test('ensure: what the cloud refuses is a notice, and the others are uploaded', async (t) => {
  const world = new CertificateWorld();
  const { keeper } = world.begin();
  const fault: Fault = { kind: 'error', code: 'FailedOperation.CertificateInvalid' };
  world.host.faults.add({ fault, actions: ['UploadCertificate'], times: 1 });
  const ensure = () => world.clock.run(keeper.ensure(UNIT, uploadsOf(ONE, TWO), world.contextOf()));
  const { ids, notices } = await ensure();
  t.deepEqual([...ids.keys()], [TWO.hash]);
  t.like(notices[0], { reason: 'CertificateRefused', blocks: false });
  t.regex(notices[0]?.message ?? '', /^the cloud does not take the certificate of "a\.example" until 2026-04-01T/);
  world.host.forget();
  t.is((await ensure()).notices.length, 1);
  t.deepEqual(world.host.counts(), {}, 'it is not tried again at once');
  await world.clock.advance(MINUTE_MS);
  t.is((await ensure()).ids.size, 2);
});

for (const action of ['UploadCertificate', 'DescribeCertificates'] as const)
  test(`ensure: ${action} that hangs holds a pass for ten seconds, and then none for a minute`, async (t) => {
    const world = new CertificateWorld();
    const { keeper } = world.begin();
    const end = world.host.faults.add({ fault: { kind: 'hang' }, actions: [action] });
    const ensure = async () => {
      const startMs = world.clock.monotonicMs();
      // As --cloud-timeout is by default.
      const context = { ...world.contextOf(), timeoutMs: MINUTE_MS };
      const ensured = await world.clock.run(keeper.ensure(UNIT, uploadsOf(ONE, TWO), context));
      return { ...ensured, tookMs: world.clock.monotonicMs() - startMs };
    };
    const first = await ensure();
    t.true(first.tookMs <= 11_000, `${first.tookMs} ms`);
    t.is(first.notices.length, 2);
    await world.clock.advance(30_000);
    t.true((await ensure()).tookMs <= 11_000);
    t.is((await ensure()).tookMs, 0);
    end();
    await world.clock.advance(2 * MINUTE_MS);
    t.is((await ensure()).ids.size, 2);
  });

test('ensure: one question for all while the cloud does not answer', async (t) => {
  const world = new CertificateWorld();
  const { keeper } = world.begin();
  const end = world.host.faults.add({ fault: { kind: 'hang' }, actions: ['DescribeCertificates'] });
  const ensure = (unit: string) => keeper.ensure(unit, uploadsOf(ONE, TWO), world.contextOf());
  const startMs = world.clock.monotonicMs();
  const units = Array.from({ length: 100 }, (_, at) => `default/web-${at}`);
  const all = await world.clock.run(Promise.all(units.map(ensure)));
  t.true(all.every(({ ids, notices }) => ids.size === 0 && notices.length === 2));
  t.true(world.clock.monotonicMs() - startMs < 2 * MINUTE_MS);
  end();
  await world.clock.advance(MINUTE_MS);
  t.is((await world.clock.run(ensure(UNIT))).ids.size, 2);
});

test('ensure: without the rights to certificates there are notices', async (t) => {
  const world = new CertificateWorld();
  const { keeper } = world.begin();
  const end = world.host.faults.add({
    fault: { kind: 'error', code: 'UnauthorizedOperation' },
    actions: ['DescribeCertificates', 'UploadCertificate'],
  });
  const ensure = () => world.clock.run(keeper.ensure(UNIT, uploadsOf(ONE), world.contextOf()));
  t.is((await ensure()).notices.length, 1);
  end();
  await world.clock.advance(MINUTE_MS);
  t.is((await ensure()).ids.size, 1);
});

test('sweep: after a renewal the old one goes when no listener shows it, and not before', async (t) => {
  const world = new CertificateWorld();
  const { keeper, metrics, stop } = world.begin();
  const ensure = (own: typeof ONE) => world.clock.run(keeper.ensure(UNIT, uploadsOf(own), world.contextOf()));
  await ensure(ONE);
  const [old = ''] = world.ids();
  const change = await world.show(old);
  const renewed = newOwn('a.example');
  const { ids } = await ensure(renewed);
  const id = ids.get(renewed.hash) ?? '';
  await world.clock.advance(60 * MINUTE_MS);
  t.deepEqual(world.ids(), [old, id], 'a listener shows it');
  t.false(world.host.counts()['DeleteCertificate'] !== undefined);
  await change(id);
  await world.clock.advance(9 * MINUTE_MS);
  t.deepEqual(world.ids(), [old, id]);
  await world.clock.advance(15 * MINUTE_MS);
  t.deepEqual(world.ids(), [id]);
  const text = await metrics();
  t.regex(text, /certificate_outcomes_total\{outcome="deleted"\} 1/);
  t.regex(text, /certificates\{state="used"\} 1/);
  t.regex(text, /certificate_expiry_timestamp_seconds 1775001600/);
  stop();
});

test('sweep: none of others, none that is planned, none of an unknown age', async (t) => {
  const world = new CertificateWorld();
  const { keeper, stop } = world.begin();
  const kept = [
    await world.upload(ONE),
    await world.upload(ONE, TAGS(ONE.hash, 'cls-another1')),
    await world.upload(ONE, { 'tke-clusterId': CLUSTER, 'tke-createdBy-flag': 'yes' }),
    await world.upload(ONE, { ...TAGS('x'), 'tke-clusterId': CLUSTER }),
    await world.upload(TWO, TAGS(TWO.hash)),
  ];
  await world.clock.run(keeper.ensure(UNIT, uploadsOf(TWO), world.contextOf()));
  await world.upload(ONE, TAGS(ONE.hash));
  const twin = await world.upload(TWO, TAGS(TWO.hash));
  t.is(world.ids().length, 7);
  await world.clock.advance(35 * MINUTE_MS);
  t.deepEqual(world.ids(), kept, `the one that nobody plans, and the second one ${twin} of one chain, are gone`);
  keeper.forget(UNIT);
  await world.clock.advance(35 * MINUTE_MS);
  t.deepEqual(world.ids(), kept.slice(0, 4));
  stop();
});

test('sweep: what is planned again meanwhile stays; a refused deletion is not tried each time', async (t) => {
  const world = new CertificateWorld();
  const { keeper, metrics, stop } = world.begin();
  const ensure = () => world.clock.run(keeper.ensure(UNIT, uploadsOf(ONE), world.contextOf()));
  await ensure();
  keeper.forget(UNIT);
  await world.clock.advance(25 * MINUTE_MS);
  await ensure();
  await world.clock.advance(30 * MINUTE_MS);
  t.is(world.ids().length, 1);
  keeper.forget(UNIT);
  const fault: Fault = { kind: 'error', code: 'FailedOperation.DeleteResourceFailed' };
  const end = world.host.faults.add({ fault, actions: ['DeleteCertificate'] });
  await world.clock.advance(50 * MINUTE_MS);
  t.is(world.host.counts()['DeleteCertificate'], 1);
  t.regex(await metrics(), /certificate_outcomes_total\{outcome="kept"\} 1/);
  end();
  await world.clock.advance(60 * MINUTE_MS);
  t.deepEqual(world.ids(), []);
  stop();
});

test('a namespace that renews all the time uploads a hundred an hour, others are served, and deletions keep pace', async (t) => {
  const world = new CertificateWorld();
  const { keeper, stop } = world.begin();
  const ensure = async (own: typeof ONE, namespace: string, unit: string) =>
    await world.clock.run(keeper.ensure(unit, uploadsOf(own), world.contextOf(), { namespaceOf: () => namespace }));
  // A chain of its own for each: what else it has does not matter here.
  const renewed = (at: number): typeof ONE => ({ ...ONE, hash: at.toString(16).padStart(64, '0') });
  let texts = '';
  for (let at = 0; at < 110; at++) {
    const { notices } = await ensure(renewed(at), 'evil', 'evil/churn');
    texts += notices.map(({ message }) => message).join();
    await world.clock.advance(10_000);
  }
  t.is(world.ids().length, 100);
  t.regex(texts, /100 certificates of the namespace were uploaded within the hour/);
  t.is((await ensure(TWO, 'default', UNIT)).ids.size, 1, 'another namespace');
  await world.clock.advance(45 * MINUTE_MS);
  t.true(world.ids().length <= 2, `${world.ids().length} are left: those that are used`);
  t.is((await ensure(renewed(200), 'evil', 'evil/churn')).ids.size, 1, 'after the hour');
  stop();
});

for (const { title, isOneUsed, left } of [
  { title: 'twenty at a time while one is used', isOneUsed: true, left: 50 },
  { title: 'all at once when none is used', isOneUsed: false, left: 0 },
])
  test(`sweep: unused ones that another process uploaded go, ${title}`, async (t) => {
    const world = new CertificateWorld();
    const chain = (at: number): string => at.toString(16).padStart(64, '0');
    for (let at = 0; at < 70; at++) await world.upload(ONE, TAGS(chain(at)));
    const { keeper, stop } = world.begin();
    if (isOneUsed) await world.clock.run(keeper.ensure(UNIT, uploadsOf(TWO), world.contextOf()));
    await world.clock.advance(31 * MINUTE_MS);
    t.is(world.ids().length, left);
    stop();
  });

/** Ids that no certificate has. */
const invented = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `none${1000 + at}`);

test('ensure: of hundreds of invented ids some are asked about in one pass, and the others of the group have theirs', async (t) => {
  const world = new CertificateWorld();
  const { keeper } = world.begin();
  const bought = await world.upload(ONE);
  const ofOther = await world.upload(TWO, TAGS(TWO.hash, 'cls-another1'));
  const ids = invented(300);
  const ensure = () =>
    world.clock.run(
      keeper.ensure(UNIT, new Map(), world.contextOf(), { named: [ids, [bought, ofOther], [...ids, bought]] }),
    );
  world.host.forget();
  const first = await ensure();
  t.true((world.host.counts()['DescribeCertificates'] ?? 0) <= 22, 'ten each of the strangers, and two');
  t.false(first.refused.has(bought));
  t.true(first.refused.has(ofOther));
  t.true(ids.slice(20).every((id) => first.refused.has(id)));
  t.true((first.afterMs ?? 0) > 0);
  let { refused, afterMs } = first;
  for (let pass = 0; pass < 40 && afterMs !== undefined; pass++) {
    await world.clock.advance(afterMs);
    ({ refused, afterMs } = await ensure());
  }
  t.deepEqual([...refused], [ofOther], 'all are known in the end');
});

test('ensure: while the cloud does not answer about ids a pass ends soon, and what was known counts', async (t) => {
  const world = new CertificateWorld();
  const { keeper } = world.begin();
  const bought = await world.upload(ONE);
  const ofOther = await world.upload(TWO, TAGS(TWO.hash, 'cls-another1'));
  const ensure = async (...named: readonly (readonly string[])[]) => {
    const startMs = world.clock.monotonicMs();
    const ensured = await world.clock.run(keeper.ensure(UNIT, new Map(), world.contextOf(), { named }));
    return { ...ensured, tookMs: world.clock.monotonicMs() - startMs };
  };
  await ensure([bought, ofOther]);
  await world.clock.advance(20 * MINUTE_MS);
  const end = world.host.faults.add({ fault: { kind: 'hang' }, actions: ['DescribeCertificates'] });
  const others = invented(3);
  const hanging = await ensure([bought, ofOther], others, ...others.map((id) => [id]));
  t.true(hanging.tookMs <= 11_000, `${hanging.tookMs} ms`);
  t.deepEqual([...hanging.refused].toSorted(), [ofOther, ...others].toSorted());
  t.true((await ensure(['none9999'])).tookMs < 1_000, 'and the next pass, also of another unit, asks nothing');
  end();
  await world.clock.advance(MINUTE_MS);
  t.deepEqual([...(await ensure([bought, ofOther], others)).refused], [ofOther]);
});

test('ensure: an id about which the cloud fails holds the other ids of its own Ingress alone', async (t) => {
  const world = new CertificateWorld();
  const { keeper } = world.begin();
  const bought = await world.upload(ONE);
  world.host.gate = async ({ action, params }) =>
    action === 'DescribeCertificates' && params['SearchKey'] === 'poison01' ? 'lose' : 'go';
  const named = [['poison01', 'none0001', bought], [bought]];
  const { refused } = await world.clock.run(keeper.ensure(UNIT, new Map(), world.contextOf(), { named }));
  t.deepEqual([...refused], ['poison01', 'none0001']);
});

test('ensure: without the rights to certificates ids may be named, however many', async (t) => {
  const world = new CertificateWorld();
  const { keeper } = world.begin();
  const fault: Fault = { kind: 'error', code: 'UnauthorizedOperation' };
  world.host.faults.add({ fault, actions: ['DescribeCertificates'] });
  const ids = invented(120);
  const ensure = () => world.clock.run(keeper.ensure(UNIT, new Map(), world.contextOf(), { named: [ids] }));
  let { refused, afterMs } = await ensure();
  for (let pass = 0; pass < 40 && afterMs !== undefined; pass++) {
    await world.clock.advance(afterMs);
    ({ refused, afterMs } = await ensure());
  }
  t.is(refused.size, 0);
});

test('ensure: uploads without an answer hold a pass once, not once for each Secret', async (t) => {
  const world = new CertificateWorld();
  const { keeper } = world.begin();
  const many = Array.from({ length: 20 }, (_, at) => ({ ...ONE, hash: at.toString(16).padStart(64, '0') }));
  await world.clock.run(keeper.ensure(UNIT, uploadsOf(TWO), world.contextOf()));
  world.host.faults.add({ fault: { kind: 'hang' }, actions: ['UploadCertificate'] });
  const startMs = world.clock.monotonicMs();
  const { ids, notices } = await world.clock.run(keeper.ensure(UNIT, uploadsOf(...many, TWO), world.contextOf()));
  t.true(world.clock.monotonicMs() - startMs < 2 * MINUTE_MS);
  t.deepEqual([...ids.keys()], [TWO.hash]);
  t.is(notices.length, 20);
});

/** Answers to uploads that took no effect. */
const NO_UPLOADS: readonly (readonly [title: string, fault: Fault])[] = [
  ['the cloud refuses', { kind: 'error', code: 'FailedOperation.CertificateInvalid' }],
  ['the API fails', { kind: 'error', code: 'InternalError' }],
  ['the API has no time for', { kind: 'error', code: 'RequestLimitExceeded' }],
];

for (const [title, fault] of NO_UPLOADS)
  test(`ensure: uploads that ${title} leave the namespace its hundred an hour`, async (t) => {
    const world = new CertificateWorld();
    const { keeper } = world.begin();
    const end = world.host.faults.add({ fault, actions: ['UploadCertificate'] });
    const ensure = (...all: readonly (typeof ONE)[]) =>
      world.clock.run(keeper.ensure(UNIT, uploadsOf(...all), world.contextOf(), { namespaceOf: () => 'shop' }));
    let texts = '';
    for (let at = 0; at < 55; at++) {
      const { notices } = await ensure(ONE, TWO);
      texts += notices.map(({ message }) => message).join();
      await world.clock.advance(MINUTE_MS);
    }
    t.notRegex(texts, /within the hour/);
    end();
    await world.clock.advance(MINUTE_MS);
    t.is((await ensure(ONE, TWO)).ids.size, 2);
  });

test('sweep: one that a person has deleted is uploaded again', async (t) => {
  const world = new CertificateWorld();
  const { keeper, stop } = world.begin();
  const ensure = () => world.clock.run(keeper.ensure(UNIT, uploadsOf(ONE), world.contextOf()));
  const before = await ensure();
  await world.clock.run(world.cloud.certificates.delete(world.ids()[0] ?? '', world.contextOf()));
  await world.clock.advance(11 * MINUTE_MS);
  const after = await ensure();
  t.notDeepEqual(before.ids, after.ids);
  t.deepEqual([...after.ids.values()], [...world.ids()]);
  stop();
});

test('sweep: one whose Ingress goes during the sweep is asked about before it is deleted', async (t) => {
  const world = new CertificateWorld();
  const { keeper, cloud, stop } = world.begin();
  const ensure = async (unit: string, own: OwnCertificate) => {
    const { ids } = await world.clock.run(keeper.ensure(unit, uploadsOf(own), world.contextOf()));
    return ids.get(own.hash) ?? '';
  };
  const shown = await ensure('default/a', ONE);
  await ensure('default/b', TWO);
  await world.clock.advance(16 * MINUTE_MS);
  keeper.forget('default/a');
  await world.clock.advance(8 * MINUTE_MS);
  await ensure('default/a', ONE);
  await world.show(shown);
  keeper.forget('default/b');
  const { usersOf } = cloud.certificates;
  Object.assign(cloud.certificates, {
    usersOf: async (...args: Parameters<typeof usersOf>) => {
      const users = await usersOf(...args);
      keeper.forget('default/a');
      return users;
    },
  });
  await world.clock.advance(12 * MINUTE_MS);
  t.notRegex(inspect(world.lines, { depth: 9 }), /is used by/);
  t.true(world.ids().includes(shown));
  stop();
});

test('no key in what is logged, or in a notice', async (t) => {
  const world = new CertificateWorld();
  const { keeper, stop } = world.begin();
  const outputs: unknown[] = [keeper, world.lines];
  const faults: readonly Fault[] = [{ kind: 'reset' }, { kind: 'error', code: 'InternalError' }];
  for (const fault of faults) {
    world.host.faults.add({ fault, actions: ['UploadCertificate'], times: 1 });
    outputs.push(await world.clock.run(keeper.ensure(UNIT, uploadsOf(ONE), world.contextOf())));
    await world.clock.advance(MINUTE_MS);
  }
  outputs.push(await world.clock.run(keeper.ensure(UNIT, uploadsOf(ONE), world.contextOf())));
  keeper.forget(UNIT);
  await world.clock.advance(40 * MINUTE_MS);
  t.deepEqual(world.ids(), []);
  t.true(world.lines.length > 0);
  const text = inspect(outputs, { depth: 20, showHidden: true, maxStringLength: null });
  const secret = ONE.privateKey.reveal().split('\n')[1] ?? '';
  t.true(secret.length > 40);
  t.false(text.includes(secret) || text.includes('PRIVATE KEY'));
  stop();
});

test('placeCertificates: ids in the place of hashes; what has none stays as it is', (t) => {
  const settings = {};
  const listeners = [
    {
      protocol: 'HTTPS' as const,
      port: 443,
      rules: [
        { domain: 'a', url: '/', settings, certificate: { kind: 'own' as const, hash: 'h1' } },
        { domain: 'd', url: '/', settings, certificate: { kind: 'own' as const, hash: 'h2' } },
        { domain: 'b', url: '/', settings, certificate: { kind: 'existing' as const, ids: ['x'], caId: 'y' } },
        { domain: 'c', url: '/', settings },
      ],
    },
    { protocol: 'HTTP' as const, port: 80, rules: [] },
  ];
  const [https, http] = placeCertificates(listeners, new Map([['h1', 'cert1']]));
  t.deepEqual(
    https?.rules.map(({ certificate }) => certificate),
    [{ kind: 'existing', ids: ['cert1'] }, { kind: 'asIs' }, { kind: 'existing', ids: ['x'], caId: 'y' }, undefined],
  );
  t.deepEqual(http, listeners[1]);
});

import test from 'ava';
import { makeKeyPair } from '../../../sim/kube-api/pki.ts';
import type { ProxyListener } from '../../../sim/vpc/api/model/clb/proxy-table.ts';
import type { ListenerPath } from '../../../sim/vpc/api/model/clb/types.ts';
import type { HealthFound } from '../../../sim/vpc/clb/health-checks.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { NO_CHECK, proxyScene, ruleOf, targetOf, VIP } from './proxy-scene.ts';

const HTTP = { listenerId: 'lbl-http', protocol: 'HTTP', port: 80 } as const;
const STATUS = ['--output', '/dev/null', '--write-out', '%{http_code} %{redirect_url}'] as const;

const nameIn = (text: string): string => /"name":"(\w+)"/.exec(text)?.[1] ?? text;

test('HTTP: the target learns the client; weights, weight 0, redirects, and the codes of failures', async (t) => {
  t.timeout(60_000);
  const { set, curl, ips, clientIp, targets, vpc } = await proxyScene(t);
  const rules: ProxyListener['rules'] = [
    ruleOf([targetOf(ips.a, 20), targetOf(ips.b)]),
    ruleOf([], { ruleId: 'loc-empty', url: '/empty' }),
    ruleOf([{ ...targetOf(ips.a), port: 1 }], { ruleId: 'loc-refused', url: '/refused' }),
    ruleOf([targetOf(ips.a)], { ruleId: 'loc-late', url: '/late', answerMs: 150 }),
    ruleOf([], {
      ...{ ruleId: 'loc-moved', domain: 'old.example.com' },
      redirect: { code: 301, protocol: 'HTTPS', port: 443, domain: 'new.example.com' },
    }),
    ruleOf([], {
      ...{ ruleId: 'loc-lost', domain: '*.example.com' },
      redirect: { code: 307, protocol: 'HTTP', port: 8080, domain: '*.example.com', url: '/there' },
    }),
  ];
  await set([{ ...HTTP, rules }]);

  const url = `http://${VIP}`;
  t.deepEqual(JSON.parse(await curl('-H', 'X-Forwarded-For: 192.0.2.1', `${url}/x`)), {
    ...{ name: 'a', host: VIP, path: '/x', client: `192.0.2.1, ${clientIp}` },
    ...{ protocol: 'http', real: clientIp, from: VIP },
  });
  const six = (await curl(...Array.from({ length: 6 }, (_, at) => `${url}/${at}`))).split('\n').map(nameIn);
  t.deepEqual([six.filter((name) => name === 'a').length, six.filter((name) => name === 'b').length], [4, 2]);
  t.is(await curl(...STATUS, `${url}/empty`), '502');
  t.is(await curl(...STATUS, `${url}/refused`), '502');
  t.is(await curl(...STATUS, `${url}/late?ms=1000`), '504');
  t.is(await curl(...STATUS, '-H', 'Host: other.org', url), '404');
  const moved = await curl(...STATUS, '-H', 'Host: old.example.com', `${url}/a?b=c`);
  t.is(moved, '301 https://new.example.com/a?b=c');
  t.is(await curl(...STATUS, '-H', 'Host: x.example.com', `${url}/a`), '307 http://x.example.com:8080/there');

  await set([{ ...HTTP, rules: [ruleOf([targetOf(ips.a)])] }]);
  const kept = curl(`${url}/kept?ms=600`);
  await waitUntil(async () => (await targets.a.texts({ do: 'http-asked' })).includes('/kept'), { what: 'asked' });
  await set([{ ...HTTP, rules: [ruleOf([targetOf(ips.a, 0), targetOf(ips.b)])] }]);
  t.deepEqual((await curl(`${url}/1`, `${url}/2`)).split('\n').map(nameIn), ['b', 'b'], 'weight 0: no new request');
  t.is(nameIn(await kept), 'a', 'and what it has goes on');
  const cut = curl(...STATUS, `${url}/cut?ms=5000`);
  await waitUntil(async () => (await targets.b.texts({ do: 'http-asked' })).includes('/cut'), { what: 'asked' });
  await set([{ ...HTTP, rules: [ruleOf([targetOf(ips.a)])] }]);
  t.is(await cut, '502', 'a target that is deregistered loses what it had');

  const refused = [{ cidr: `${clientIp}/32`, isAccepted: false }];
  await set([{ ...HTTP, admission: refused, rules: [ruleOf([targetOf(ips.a)])] }]);
  t.is(await curl('--connect-timeout', '0.3', url), '', 'its security groups refuse the client');
  await set([]);
  t.is(await curl('--connect-timeout', '0.3', url), '', 'without listeners it answers no one');
  t.false((await vpc.router.ipJson('link')).some(({ ifname }) => ifname === 'l1'));
});

test('HTTPS: certificates by server name, a new one without a new listener, mutual TLS, a wrong table', async (t) => {
  t.timeout(60_000);
  const { set, curl, ips, clientIp } = await proxyScene(t);
  const folder = createTempDir('proxy-tls');
  t.teardown(() => folder.close());
  const [one, other, next, client] = await Promise.all(
    ['one', 'other', 'next', 'client'].map((name) => makeKeyPair(folder.path, name, { dns: ['*.example.com'] })),
  );
  if (one === undefined || other === undefined || next === undefined || client === undefined) return t.fail();
  const listener: ProxyListener = {
    ...{ listenerId: 'lbl-https', protocol: 'HTTPS', port: 443 },
    rules: [ruleOf([targetOf(ips.a)], { domain: '*.example.com' })],
    defaultCertificate: one,
    certificates: { 'b.example.com': other },
  };
  const ask = (host: string, ca: { readonly certPath: string }, ...args: readonly string[]) =>
    curl(...args, '--cacert', ca.certPath, '--resolve', `${host}:443:${VIP}`, `https://${host}/`);
  await set([listener]);
  t.like(JSON.parse(await ask('a.example.com', one)), { name: 'a', protocol: 'https', client: clientIp });
  t.is(nameIn(await ask('b.example.com', other)), 'a');
  t.is(await ask('b.example.com', one), '', 'not the default one');

  await set([
    { ...listener, defaultCertificate: next, certificates: { 'b.example.com': { ...other, clientCa: client.cert } } },
  ]);
  t.is(nameIn(await ask('a.example.com', next)), 'a');
  t.is(await ask('b.example.com', other, ...STATUS), '400', 'mutual TLS, and no certificate');
  t.is(nameIn(await ask('b.example.com', other, '--cert', client.certPath, '--key', client.keyPath)), 'a');
  await t.throwsAsync(set([{ ...listener, defaultCertificate: { cert: one.cert, key: next.key } }]), {
    message: /key values mismatch/,
  });
  t.is(nameIn(await ask('a.example.com', next)), 'a', 'a table that is refused changes nothing');
});

test('health: a check of each rule from the range of checks; what is ill gets no request', async (t) => {
  t.timeout(60_000);
  const { set, curl, ips, targets, vpc } = await proxyScene(t);
  const found = new Map<string, boolean>();
  vpc.loadBalancing.onHealth = (one: HealthFound) => void found.set(`${one.listenerId} ${one.key}`, one.isAlive);
  const check = { ...NO_CHECK, HealthSwitch: 1, HttpCheckPath: '/health', HttpCode: 2 };
  const both = [targetOf(ips.a), targetOf(ips.b)];
  const wrong = { ruleId: 'loc-wrong', url: '/wrong', healthCheck: { ...check, HttpCode: 1 } };
  await set([{ ...HTTP, rules: [ruleOf(both, { healthCheck: check }), ruleOf(both, wrong)] }]);
  const become = (wanted: Readonly<Record<string, boolean>>) =>
    waitUntil(() => JSON.stringify([...found].sort()) === JSON.stringify(Object.entries(wanted).sort()), {
      what: JSON.stringify(wanted),
    });
  const [a, b] = [`${ips.a}:8080`, `${ips.b}:8080`];
  const ill = { [`loc-wrong ${a}`]: false, [`loc-wrong ${b}`]: false };
  await become({ [`loc-00000001 ${a}`]: true, [`loc-00000001 ${b}`]: true, ...ill });
  t.true((await targets.a.texts({ do: 'clients', port: 8080 })).includes('100.65.0.1'));
  t.regex(await curl(`http://${VIP}/wrong`), /"name"/, 'when all are ill, all are tried');
  await targets.b.text({ do: 'silence', port: 8080 });
  await become({ [`loc-00000001 ${a}`]: true, [`loc-00000001 ${b}`]: false, ...ill });
  await vpc.loadBalancing.settled();
  const urls = Array.from({ length: 4 }, (_, at) => `http://${VIP}/${at}`);
  t.deepEqual((await curl(...urls)).split('\n').map(nameIn), ['a', 'a', 'a', 'a']);
});

test('beside layer 4 on one VIP, and behind the security groups of targets; bounds', async (t) => {
  t.timeout(60_000);
  const { set, curl, ips, clientIp, vpc } = await proxyScene(t);
  const listener = { ...HTTP, rules: [ruleOf([targetOf(ips.a)], { answerMs: 200 })] };
  const layer4: ListenerPath = {
    ...{ listenerId: 'lbl-tcp', vip: VIP, protocol: 'TCP' as const, port: 81 },
    ...{ isSticky: false, resets: true, idleSeconds: 900, healthCheck: NO_CHECK, targets: [targetOf(ips.b)] },
  };
  const sources = async () => {
    const ask = (port: number) => curl('--connect-timeout', '0.3', `http://${VIP}:${port}/`);
    const bodies = [await ask(80), await ask(81)];
    return bodies.map((body) => `${nameIn(body)} ${/"from":"([^"]+)"/.exec(body)?.[1] ?? ''}`);
  };
  const wrong = { ...listener, rules: [ruleOf([targetOf(ips.a)], { url: '~(' })] };
  await vpc.loadBalancing.setListener(layer4);
  await t.throwsAsync(set([wrong]), { message: /Invalid regular expression/ });
  t.deepEqual(await sources(), [' ', `b ${clientIp}`], 'a first table that is refused leaves no proxy');
  await set([listener]);
  const closed = { ...wrong, admission: [] };
  await t.throwsAsync(set([closed]), { message: /Invalid regular expression/ });
  t.deepEqual(await sources(), [`a ${VIP}`, `b ${clientIp}`], 'nor does a later one change who is admitted');
  await t.throwsAsync(set([listener, { ...listener, listenerId: 'lbl-2' }]), { message: /have the same port/ });
  await vpc.setAdmission('a/eth0', [{ cidr: `${clientIp}/32`, isAccepted: true }]);
  t.is(await curl(...STATUS, `http://${VIP}/`), '504', 'the groups of the target are asked about the VIP');
  await set([listener], { passes: true });
  t.is(await curl(...STATUS, `http://${VIP}/`), '200');
  await set([]);
  t.deepEqual(await sources(), [' ', `b ${clientIp}`], 'layer 4 stays');
  const many = Array.from({ length: 51 }, (_, at) => ({ ...HTTP, listenerId: `lbl-${at}`, port: 1_000 + at }));
  await t.throwsAsync(set(many.map((one) => ({ ...one, rules: [] }))), { message: 'lb-proxy: more than 50 listeners' });
});

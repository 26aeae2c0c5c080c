import test from 'ava';
import { makeKeyPair } from '../../../sim/kube-api/pki.ts';
import type { ProxyListener } from '../../../sim/vpc/api/model/clb/proxy-table.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { proxyScene, ruleOf, targetOf, VIP } from './proxy-scene.ts';

// Hundreds of handshakes while certificates change again and again.
const ROTATIONS = 40;
const ASKERS = 4;
const HOSTS = ['a.example.com', 'b.example.com'] as const;

test('certificates rotate under load: no handshake and no request fails, and kept connections stay', async (t) => {
  t.timeout(240_000);
  const { set, vpc, ips } = await proxyScene(t);
  const folder = createTempDir('rotation');
  t.teardown(() => folder.close());
  const pairs = await Promise.all(['old', 'new'].map((name) => makeKeyPair(folder.path, name, { dns: [...HOSTS] })));
  const listenerOf = (turn: number): ProxyListener => {
    const [one, other] = [pairs[turn % 2], pairs[(turn + 1) % 2]];
    if (one === undefined || other === undefined) throw new Error('a certificate is missing');
    const rules = HOSTS.map((domain) =>
      ruleOf([targetOf(ips.a), targetOf(ips.b)], { ruleId: `loc-${domain}`, domain }),
    );
    // The one of `a` is the default one, that of `b` has its server name.
    const certificates = { defaultCertificate: one, certificates: { 'b.example.com': other } };
    return { listenerId: 'lbl-https', protocol: 'HTTPS', port: 443, rules, ...certificates };
  };
  await set([listenerOf(0)]);
  const { netns } = vpc.node('client');
  const script = new URL('handshake-client.ts', import.meta.url).pathname;
  const clients = HOSTS.map((host) =>
    netns.start([process.execPath, script, VIP, host, `${ASKERS}`, ...pairs.map(({ certPath }) => certPath)]),
  );
  t.teardown(() => Promise.all(clients.map((client) => client.stop('SIGKILL'))));
  for (let turn = 1; turn <= ROTATIONS; turn++) {
    await set([listenerOf(turn)]);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  for (const client of clients) {
    client.writeLine('end');
    await client.exited;
    const { handshakes, failures, serials, kept } = JSON.parse(client.stdout);
    t.deepEqual(failures, [], client.stderr);
    t.true(handshakes >= ROTATIONS, `${handshakes} handshakes`);
    t.is(serials, 2, 'both certificates were seen');
    t.true(kept >= ROTATIONS, `${kept} requests on the connection that stayed`);
    t.log(`${handshakes} handshakes, ${kept} requests on one connection`);
  }
});

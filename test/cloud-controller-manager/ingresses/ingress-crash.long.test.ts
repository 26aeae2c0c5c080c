// A life for each call at which a process may die: some eighty of them.
import test from 'ava';
import { makeCertificate } from '../../../runtime/make-certificate.ts';
import type { Crash } from '../process-lives.ts';
import { DEATHS, dieAtEachCall, type Left } from '../services/die-at-each-call.ts';
import { IngressWorld, ruleOf } from './ingress-world.ts';

const SECOND_MS = 1_000;
/** A certificate without use is seen twice before it goes, ten minutes apart, and a creation of which nothing is known counts as lost after a minute. */
const LIMIT_MS = 60 * 60 * SECOND_MS;
const HOST = 'www.example.com';
const REDIRECTED = { 'ingress.cloud.tencent.com/auto-rewrite': 'true' };
/** Pods become healthy, redirects move. */
const TLS = { tls: [{ hosts: [HOST], secretName: 'site-tls' }], ...ruleOf('/', HOST) };
const CERTIFICATE = makeCertificate({
  ...{ commonName: HOST, use: 'server', names: [HOST] },
  ...{ notBeforeMs: Date.UTC(2000, 0, 1), notAfterMs: Date.UTC(2099, 0, 1) },
});

/** An Ingress is made, gets a certificate and a redirect, other paths, and goes; a process follows each that died. */
async function live(crash: Crash | undefined): Promise<Left> {
  const world = await IngressWorld.start();
  const { services } = world;
  const { lives } = services.world;
  const bought = await services.buy();
  const foreign = services.balancer();
  const own = () => services.balancers().filter(({ loadBalancerId }) => loadBalancerId !== bought);
  const certificates = () => services.world.scene.host.model.state.certificates.all().length;
  const faults: string[] = [];
  const until = async (what: string, holds: () => boolean): Promise<void> => {
    for (let ms = 0; !holds(); ms += SECOND_MS) {
      if (ms >= LIMIT_MS) return void faults.push(`${what} never: ${JSON.stringify(rules())}, ${certificates()}`);
      if (lives.isOver) await services.replace();
      await world.advance(SECOND_MS);
      if (own().length > 1) return void faults.push(`${what}: two load balancers`);
      if (certificates() > 1) return void faults.push(`${what}: two uploads of one certificate`);
    }
  };
  const rules = () => (own().length === 1 ? world.rulesOf(own()[0]?.loadBalancerId ?? '') : {});
  const are = (wanted: object): boolean => JSON.stringify(rules()) === JSON.stringify(wanted);

  const ip = await world.serve('web');
  await world.makeSecret('site-tls', { 'tls.crt': CERTIFICATE.cert, 'tls.key': CERTIFICATE.key }, 'kubernetes.io/tls');
  if (crash !== undefined) lives.crash = { ...crash, at: lives.made[crash.of] + crash.at };
  await world.create('site', { spec: ruleOf('/', HOST) });
  const target = [`${ip}:8080 10`];
  await until('the rule', () => are({ [`HTTP:80 ${HOST}/`]: target }) && world.addresses('site').length === 1);
  await world.patch('site', { annotations: REDIRECTED, spec: TLS });
  await until('the redirect', () => are({ [`HTTP:80 ${HOST}/`]: '-> 301', [`HTTPS:443 ${HOST}/`]: target }));
  await world.patch('site', { annotations: { ...REDIRECTED, 'ingress.cloud.tencent.com/auto-rewrite': null } });
  await until('HTTPS alone', () => are({ [`HTTPS:443 ${HOST}/`]: target }));
  await world.delete('site');
  await until('the end', () => world.ingress('site') === undefined && own().length === 0 && certificates() === 0);
  if (services.balancer() !== foreign) faults.push('a load balancer of others was changed');
  await world.stop();
  return { faults, isCrashDone: lives.crash === undefined };
}

for (const death of DEATHS) {
  test(`an Ingress: one load balancer, one certificate, and nothing left, when the process dies ${death.moment} each call to ${death.of}`, async (t) => {
    await dieAtEachCall(t, death, live, 15);
  });
}

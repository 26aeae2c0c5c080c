import { type Change, ruleOf, ServiceStage } from '../service-stage.ts';
import type { Story } from '../story.ts';
import { WORLD } from './services.ts';
import { SITE_TLS } from './site-tls.ts';

const HOST = 'www.example.com';
const REDIRECT = 'ingress.cloud.tencent.com/auto-rewrite';
const CLUSTER_IP = { spec: { type: 'ClusterIP', ports: [{ name: 'http', port: 80, targetPort: 8_080 }] } };

/** Annotations of Ingresses that share a load balancer of others. */
export function groupOn(loadBalancerId: string) {
  return {
    'kubernetes.io/ingress.existLbId': loadBalancerId,
    'ingress.cloud.tencent.com/enable-group': 'true',
  };
}

/** An Ingress is made, gets a certificate and a redirect, HTTPS alone, and goes. */
export const ingressLife: Story = {
  title: 'an Ingress has one load balancer and one certificate, and nothing is left',
  world: WORLD,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    const node = await stage.node();
    await services.create('web', CLUSTER_IP);
    const [pod = ''] = await stage.pods(node, 1, { labels: { app: 'web' } });
    await services.makeTlsSecret('site-tls', SITE_TLS);
    const tls = { tls: [{ hosts: [HOST], secretName: 'site-tls' }], ...ruleOf('/', HOST) };
    const target = `${HOST}/ ${stage.ipOf(pod)}:8080 10`;
    stage.begin();
    await services.createIngress('site', { spec: ruleOf('/', HOST) });
    await stage.until('its rule', () => services.ways === `HTTP/80 ${target}`);
    stage.cloudFault({ fault: { kind: 'reset', after: true }, actions: ['UploadCertificate'], times: 1 });
    await services.change('Ingress', 'site', { annotations: { [REDIRECT]: 'true' }, spec: tls });
    await stage.until('a redirect', () => services.ways === `HTTP/80 ${HOST}/ ->; HTTPS/443 ${target}`);
    await services.change('Ingress', 'site', { annotations: { [REDIRECT]: null } });
    await stage.until('HTTPS alone', () => services.ways === `HTTPS/443 ${target}`);
    await services.end('Ingress', 'site');
    await stage.until('no certificate', () => services.certificates === 0, 3_600_000);
  },
};

/** An Ingress on a load balancer of others ends while its listener is still to be made, sent for by a leader that may be gone. */
export const lateRules: Story = {
  title: 'an Ingress that ends leaves nothing, alone or in a group, however late its listener is made',
  world: WORLD,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    const node = await stage.node();
    const group = groupOn(await services.buy());
    const alone = { ...group, 'ingress.cloud.tencent.com/enable-group': 'false' };
    await services.create('web', CLUSTER_IP);
    await stage.pods(node, 1, { labels: { app: 'web' } });
    stage.begin();
    const tell = async (annotations: Change['annotations'] & object, diesBetween: boolean): Promise<void> => {
      const sent = stage.sent('CreateListener');
      stage.stray('CreateListener', 45, 'ccm');
      await services.createIngress('site', { annotations, spec: ruleOf('/', HOST) });
      await stage.until('a listener is sent for', () => stage.sent('CreateListener') > sent);
      if (diesBetween) stage.killLeader('ccm');
      await stage.until('its rule', () => / 10$/.test(services.ways));
      await services.end('Ingress', 'site');
      await stage.seconds(60);
      stage.expect('no listener is left', services.listeners === 0);
    };
    for (const diesBetween of [false, true]) for (const one of [group, alone]) await tell(one, diesBetween);
  },
};

/** Two Ingresses join a group on a load balancer of others, one leaves, then the other. */
export const ingressGroup: Story = {
  title: 'a group of Ingresses has the rules of its members, and leaves nothing',
  world: WORLD,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    const node = await stage.node();
    const annotations = groupOn(await services.buy());
    await services.create('web', CLUSTER_IP);
    await stage.pods(node, 1, { labels: { app: 'web' } });
    const paths = () => services.ways.replace(/ [\d.]+:8080 10/g, '');
    stage.begin();
    await services.createIngress('one', { annotations, spec: ruleOf('/a', HOST) });
    await stage.until('the first rule', () => paths() === `HTTP/80 ${HOST}/a`);
    await services.createIngress('two', { annotations, spec: ruleOf('/b', HOST) });
    await stage.until('both rules', () => paths() === `HTTP/80 ${HOST}/a; HTTP/80 ${HOST}/b`);
    await services.end('Ingress', 'one');
    await stage.until('one rule', () => paths() === `HTTP/80 ${HOST}/b`);
    await services.end('Ingress', 'two');
    stage.expect('no listener is left', services.listeners === 0);
  },
};

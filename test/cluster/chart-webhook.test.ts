import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { BACKEND_READY_GATE, ENI_IP_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import { readCertificateSet, renderCertificateSet } from '../../kube/certificates/certificate-set.ts';
import { SECRETS } from '../../kube/resource-types.ts';
import { makeCertificate } from '../../runtime/make-certificate.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { startControlPlaneProxy } from './control-plane-proxy.ts';
import { tellOurPods } from './deploy.ts';
import { shellCommandsOf } from './doc-commands.ts';
import { type PageUser, readPage } from './page-user.ts';
import { awaitPods, deploymentManifest, podManifest, statefulSetManifest } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { refusedRequests } from './refused.ts';
import { balancedService, DIRECT } from './workloads/balanced.ts';
import { hasHelm, installChart, LOAD_BALANCER_VALUES } from './workloads/chart.ts';

// The chart as docs/install.md installs it: its webhook is there by default, with certificates that it makes. With the extender
// beside it, kube-scheduler runs with the configuration that the extender prints.

const WEBHOOK = 'tke-eni-ip-webhook';
const SCHEDULER = 'tke-eni-ip-scheduler';
/** A free address of Services. */
const SCHEDULER_IP = '10.96.0.61';
const SYSTEM = ['-n', 'kube-system'] as const;
const DAY_MS = 86_400_000;
/** Taken by kube-scheduler when it starts again. */
const schedulerFlags: Record<string, string> = {};
const userOf = (name: string): string => `system:serviceaccount:kube-system:${name}`;

if (!hasHelm) {
  test.skip('the chart has a webhook and an extender that make their certificates (HELM names no helm executable)', () => {});
} else {
  let user: PageUser | undefined;

  const running = clusterOfFile(
    () =>
      startRealCluster({
        // kube-scheduler and the API server have the way to Services that docs/static-ip.md wants: a kube-proxy.
        apiServerFlags: { 'enable-aggregator-routing': 'false' },
        schedulerFlags,
      }),
    async (cluster) => {
      startControlPlaneProxy(cluster);
      const scheduler = ['scheduler.enabled=true', `scheduler.clusterIP=${SCHEDULER_IP}`];
      user = await installChart(cluster, [...LOAD_BALANCER_VALUES, ...scheduler]);
    },
  );

  /** Tries a creation in a namespace; returns the Pod as it would be stored. @throws RunError when it is refused */
  const tried = async (namespace: string, ...flags: readonly string[]): Promise<unknown> => {
    const run = ['-n', namespace, 'run', 'probe', '--image=app:1', '--dry-run=server', '-o', 'json'];
    return JSON.parse(await running().kubectl(...run, ...flags));
  };
  const requestOf = (pod: unknown) => at(pod, 'spec', 'containers', 0, 'resources', 'requests', ENI_IP_RESOURCE);
  const gateOf = (pod: unknown) => at(pod, 'spec', 'readinessGates', 0, 'conditionType');

  test.serial('webhook: Pods get their request of an address, but not those of kube-system', async (t) => {
    t.is(requestOf(await tried('default')), '1');
    t.is(requestOf(await tried('kube-system')), undefined);
    await running().apply(deploymentManifest('plain', 2, { eniIps: 0 }));
    t.is(new Set((await awaitPods(running(), 'app=plain', 2)).map(({ ip }) => ip)).size, 2);
  });

  test.serial('webhook: Pods that a direct Service selects get the gate, others do not', async (t) => {
    const cluster = running();
    await cluster.apply(balancedService({ name: 'web', selector: { app: 'web' }, annotations: DIRECT }));
    const isGated = async () => gateOf(await tried('default', '--labels=app=web')) === BACKEND_READY_GATE;
    await waitUntil(isGated, { what: 'the gate', timeoutMs: 60_000, everyMs: 500 });
    t.is(gateOf(await tried('default', '--labels=app=other')), undefined);
    t.is(gateOf(await tried('kube-system', '--labels=app=web')), undefined);
    t.is(
      gateOf(await tried('default', '--labels=app=web,tke.cloud.tencent.com/load-balancer-gate=disabled')),
      undefined,
    );
  });

  test.serial('webhook: its certificate is made again before it ends; no Pod is refused meanwhile', async (t) => {
    const cluster = running();
    const ref = { namespace: 'kube-system', name: `${WEBHOOK}-certificates` };
    const found = await cluster.admin.get(SECRETS, ref);
    if (found === undefined) return t.fail('no Secret');
    const set = readCertificateSet(found['data']);
    const { authority } = set;
    if (authority === undefined) return t.fail('no authority');
    // As it is sixty days later.
    const now = Date.now();
    const names = [`${WEBHOOK}.kube-system.svc`];
    const times = { notBeforeMs: now - 61 * DAY_MS, notAfterMs: now + 29 * DAY_MS };
    const old = makeCertificate({ commonName: WEBHOOK, use: 'server', names, ...times }, authority);
    let [asked, refused, isOver] = [0, 0, false];
    const asking = (async () => {
      while (!isOver) {
        const pod = await tried('default').catch(() => undefined);
        asked += 1;
        if (requestOf(pod) !== '1') refused += 1;
      }
    })();
    await cluster.admin.update(SECRETS, { ...found, data: renderCertificateSet({ ...set, server: old }) });
    const served = new Map<string, string>();
    const renewed = async () => {
      const now = readCertificateSet((await cluster.admin.get(SECRETS, ref))?.['data']).server?.cert;
      if (now === undefined || now === old.cert || now === set.server?.cert) return false;
      for (const { name, ip } of cluster.nodes) served.set(name, await certificateOf(ip));
      return [...served.values()].every((cert) => cert.trim() === now.trim());
    };
    const explain = () => JSON.stringify([...served]);
    await waitUntil(renewed, {
      what: 'both replicas with a new certificate',
      timeoutMs: 180_000,
      everyMs: 1_000,
      explain,
    })
      .finally(() => {
        isOver = true;
      })
      .catch(async (error: Error) => {
        throw new Error(`${error.message}\n${await tellOurPods(cluster)}`);
      });
    await asking;
    t.log(`figure: ${asked} Pods asked for while both replicas changed their certificate, ${refused} refused`);
    t.true(asked > 5);
    t.is(refused, 0);
  });

  /** The certificate that the webhook on a node serves with, PEM. */
  const certificateOf = async (ip: string): Promise<string> => {
    const argv = ['sh', '-c', `openssl s_client -connect ${ip}:61692 </dev/null 2>/dev/null | openssl x509`];
    return (await running().controlPlane.netns.tryRun(argv)).stdout;
  };

  test.serial('docs/static-ip.md: kube-scheduler runs with the configuration that the extender prints', async (t) => {
    const cluster = running();
    const heading = 'Certificates that the extender makes';
    const [block] = shellCommandsOf(readPage('static-ip.md')).filter((one) => one.heading === heading);
    if (user === undefined || block === undefined) return t.fail('no user, or no commands');
    await user.sh(block.lines.join('\n'));
    const printed = readFileSync(join(user.place, 'kube-scheduler-configuration.yaml'), 'utf8');
    t.true(printed.includes(`urlPrefix: https://${SCHEDULER_IP}\n`), printed.replaceAll(/Data: .*/g, 'Data: …'));
    // The machine of the control plane has its files elsewhere.
    const path = join(cluster.dir, 'kube-scheduler-configuration.yaml');
    const own = printed.replace('/etc/kubernetes/scheduler.conf', join(cluster.dir, 'scheduler.conf'));
    t.not(own, printed);
    writeFileSync(path, own, { mode: 0o600 });
    schedulerFlags['config'] = path;
    schedulerFlags['leader-elect'] = 'true';
    await cluster.scheduler.restart();
    await cluster.apply(podManifest('by-extender'));
    await awaitPods(cluster, 'app=by-extender', 1, { timeoutMs: 120_000 }).catch(async (error: Error) => {
      const logs = cluster.scheduler.logs().slice(-3_000);
      throw new Error(`${error.message}\n${logs}\n${await tellOurPods(cluster)}`);
    });
    // Who binds a Pod has been asked by kube-scheduler to do so.
    t.deepEqual(bindersOf('by-extender'), [userOf(SCHEDULER)]);
    await cluster.apply(podManifest('by-scheduler', { network: 'tke-bridge', spec: { hostNetwork: true } }));
    await awaitPods(cluster, 'app=by-scheduler', 1, { timeoutMs: 60_000 });
    t.deepEqual(bindersOf('by-scheduler'), ['system:kube-scheduler']);
  });

  /**
   * Who bound Pods of a name in the namespace `default`, each once: a Pod of a StatefulSet has the name of the one before, and a
   * release that asks for the first one again sooner binds both.
   */
  const bindersOf = (pod: string): readonly unknown[] => {
    const bound = { resource: 'pods', subresource: 'binding', namespace: 'default', name: pod };
    const isBinding = (one: object): boolean =>
      Object.entries(bound).every(([field, value]) => at(one, 'objectRef', field) === value);
    const binders = running()
      .auditLog()
      .filter((one) => isBinding(one) && at(one, 'responseStatus', 'code') === 201)
      .map((one) => at(one, 'user', 'username'));
    return [...new Set(binders)];
  };

  test.serial(
    'scheduler: the filter keeps a Pod off nodes that keep no addresses, and its reason is told',
    async (t) => {
      const cluster = running();
      const annotations = { [POD_ANNOTATION.deletePolicy]: 'Never' };
      await cluster.apply(statefulSetManifest('kept', 1, { annotations }));
      const told = async () => {
        const fields = '--field-selector=involvedObject.name=kept-0,reason=FailedScheduling';
        return (await cluster.kubectl('get', 'events', fields)).includes('StaticIPDisabled');
      };
      await waitUntil(told, { what: 'the reason of the filter', timeoutMs: 60_000, everyMs: 500 }).catch(
        async (error: Error) => {
          throw new Error(`${error.message}\n${await tellOurPods(cluster)}`);
        },
      );
      await cluster.kubectl('label', 'node', 'node2', 'tke.cloud.tencent.com/static-ip=true');
      const keeps = async () => at(await cluster.kubectlJson('get', 'nec', 'node2'), 'spec', 'enableStaticIP') === true;
      await waitUntil(keeps, { what: 'node2 keeps addresses', timeoutMs: 60_000, everyMs: 500 });
      // kube-scheduler does not follow NodeENIConfigs: it would ask for the same Pod again only after minutes.
      await cluster.kubectl('delete', 'pod', 'kept-0');
      const [pod] = await awaitPods(cluster, 'app=kept', 1, { timeoutMs: 120_000 });
      t.is(pod?.node, 'node2');
      t.deepEqual(bindersOf('kept-0'), [userOf(SCHEDULER)]);
    },
  );

  test.serial('audit log: the rights of the chart are enough, and each of its programs asks something', async (t) => {
    const cluster = running();
    const users = [SCHEDULER, WEBHOOK].map(userOf);
    const asked = cluster.auditLog().filter((one) => users.includes(String(at(one, 'user', 'username'))));
    for (const name of users)
      t.true(
        asked.some((one) => at(one, 'user', 'username') === name),
        name,
      );
    t.deepEqual(
      asked
        .filter((one) => [401, 403].includes(Number(at(one, 'responseStatus', 'code'))))
        .map((one) => `${at(one, 'verb')} ${at(one, 'requestURI')}`),
      [],
    );
    t.deepEqual(refusedRequests(cluster), []);
    t.deepEqual(await auditCluster(cluster), []);
    t.is(
      (await cluster.tryKubectl([...SYSTEM, 'get', 'secret', `${WEBHOOK}-tls`])).code,
      1,
      'nobody made a certificate',
    );
  });
}

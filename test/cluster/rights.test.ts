import test from 'ava';
import { OWN_RIGHTS, PUBLISHED_RIGHTS, type Rule } from '../conf/published-rights.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitServing } from './deploy.ts';
import { openApi, tokenOfPod } from './pod-token.ts';
import { awaitPods, deploymentManifest, podsOf, spreadOverNodes } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { ask, isDenied, isGranted, listRights, listWishes, OF_EVERYBODY } from './rights-matrix.ts';

const SYSTEM = 'kube-system';
const LOCK = 'tke-eni-ipamd-leader';
const LEADER = 'control-plane.alpha.kubernetes.io/leader';
const COMPONENTS = ['agent', 'ipamd'] as const;
type Component = (typeof COMPONENTS)[number];

/** Requests at once: the server lets this many of one user through without queueing. */
const AT_ONCE = 8;
/** Beyond the verbs of requests: who has one of these can give itself every other right. */
const ESCALATIONS = [
  { verb: 'escalate', group: 'rbac.authorization.k8s.io', resource: 'clusterroles' },
  { verb: 'bind', group: 'rbac.authorization.k8s.io', resource: 'clusterroles' },
  { verb: 'impersonate', group: '', resource: 'users' },
  { verb: 'impersonate', group: '', resource: 'groups' },
  { verb: 'impersonate', group: '', resource: 'serviceaccounts' },
  { verb: 'approve', group: 'certificates.k8s.io', resource: 'signers' },
  { verb: '*', group: '*', resource: '*' },
] as const;
/** What our components are told in normal operation beside success, and why. */
const EXPECTED: Readonly<Record<string, string>> = {
  'get nodeeniconfigs 404': 'the node is new, or its Node is gone: ipamd makes or forgets the object',
  'list machines 404': 'the cluster has no native nodes, and no such kind',
  'get configmaps 404': 'nobody has led yet: the first candidate makes the lock',
  'update configmaps 409': 'two candidates want the lock: one is late',
  'create configmaps 409': 'the same with the first lock',
  'update customresourcedefinitions 409':
    'both replicas look at the definitions at their start: the later one reads again',
  'patch nodes 422': 'the Node changed since it was read, which the patch tests: it is made again',
  'create nodeeniconfigs 409': 'the last leader made it a moment before',
  'update nodeeniconfigs 409': 'agent and ipamd wrote at once: the later one reads again',
  'create vpcipclaims 409': 'a record of the last leader, made again',
  'create vpcips 409': 'a record of the last leader, made again',
  'update vpcipclaims 409': 'the record changed meanwhile: it is read again',
  'update vpcips 409': 'the record changed meanwhile: it is read again',
  'delete vpcipclaims 404': 'the record is gone already',
  'delete vpcips 404': 'the record is gone already',
  'delete vpcenis 404': 'the record is gone already',
  'patch events 404': 'the event that is counted up has expired',
};

const running = clusterOfFile(
  () => startRealCluster(),
  async (cluster) => {
    await cluster.deploy();
  },
);

const userOf = (component: Component) => `system:serviceaccount:${SYSTEM}:tke-eni-${component}`;
const ownPods = (component: Component) => podsOf(running(), `k8s-app=tke-eni-${component}`, SYSTEM);

/** The token that a running Pod of a component has. */
async function tokenOf(component: Component): Promise<string> {
  const [pod] = await ownPods(component);
  if (pod === undefined) throw new Error(`no Pod of ${component}`);
  return tokenOfPod(running(), pod);
}

async function leader(): Promise<string> {
  const lock = await running().kubectlJson('-n', SYSTEM, 'get', 'configmap', LOCK);
  return String(JSON.parse(String(at(lock, 'metadata', 'annotations', LEADER))).holderIdentity);
}

/** Deletes a Pod of ours, and waits until all of the component are there again. */
async function replace(component: Component, pick: (name: string) => boolean): Promise<void> {
  const before = await ownPods(component);
  const victim = before.find(({ name }) => pick(name));
  if (victim === undefined) throw new Error(`none of ${before.map(({ name }) => name).join()} is the one`);
  await running().kubectl('-n', SYSTEM, 'delete', 'pod', victim.name, '--wait', '--timeout=60s');
  await awaitPods(running(), `k8s-app=tke-eni-${component}`, before.length, { namespace: SYSTEM, timeoutMs: 120_000 });
}

test.serial(
  'audit log: nothing that agent or ipamd ask is denied while Pods and they themselves come and go',
  async (t) => {
    const cluster = running();
    await cluster.apply(deploymentManifest('web', 6, { spec: spreadOverNodes('web') }));
    await awaitPods(cluster, 'app=web', 6);
    await replace('agent', () => true);
    await awaitServing(cluster);
    const first = await leader();
    await replace('ipamd', (name) => first.includes(name));
    await waitUntil(async () => (await leader()) !== first, {
      what: 'another leader',
      timeoutMs: 90_000,
      everyMs: 500,
      explain: () => `${first} leads`,
    });
    await cluster.kubectl('scale', 'deployment', 'web', '--replicas=10');
    await awaitPods(cluster, 'app=web', 10);
    await cluster.kubectl('delete', 'deployment', 'web', '--wait', '--cascade=foreground', '--timeout=90s');

    for (const component of COMPONENTS) {
      const asked = cluster
        .auditLog()
        .filter(
          (one) =>
            at(one, 'user', 'username') === userOf(component) ||
            String(one['userAgent']).includes(`tke-eni-${component}`),
        );
      t.true(asked.length > 20, `${component} asked ${asked.length} times`);
      t.deepEqual(
        [...new Set(asked.map((one) => at(one, 'user', 'username')))],
        [userOf(component)],
        'every request bore a token that the server knew',
      );
      const refused = Map.groupBy(
        asked.filter((one) => Number(at(one, 'responseStatus', 'code')) >= 400),
        (one) => {
          const subresource = at(one, 'objectRef', 'subresource');
          const resource = `${at(one, 'objectRef', 'resource')}${subresource === undefined ? '' : `/${subresource}`}`;
          return `${one['verb']} ${resource} ${at(one, 'responseStatus', 'code')}`;
        },
      );
      for (const [what, { length }] of refused)
        t.log(`${component}: ${what}: ${length} of ${asked.length}: ${EXPECTED[what] ?? 'why?'}`);
      t.deepEqual(
        [...refused].filter(([what]) => !Object.hasOwn(EXPECTED, what)).map(([what, [first]]) => ({ what, first })),
        [],
      );
    }
  },
);

for (const component of COMPONENTS) {
  const account = `tke-eni-${component}`;
  const rules: readonly Rule[] = [
    ...(PUBLISHED_RIGHTS[account] ?? []),
    ...(OWN_RIGHTS[account] ?? []),
    ...OF_EVERYBODY,
  ];

  test.serial(`${component}: is allowed what is published, and denied all else that the server has`, async (t) => {
    const [api, token] = [openApi(running()), await tokenOf(component)];
    const wishes = await listWishes(api, [SYSTEM, 'default']);
    const wrong: string[] = [];
    const counts = { allowed: 0, denied: 0 };
    const queue = wishes.values();
    const worker = async () => {
      for (const wish of queue) {
        const answer = await ask(api, token, wish);
        const denied = isDenied(answer);
        counts[denied ? 'denied' : 'allowed'] += 1;
        if (denied === isGranted(rules, wish) || (answer.status === 403 && !denied) || answer.status === 401)
          wrong.push(
            `${wish.verb} ${wish.resource} of '${wish.group}', ${wish.path}: ${answer.status} ${JSON.stringify(answer.body)}`,
          );
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    t.log(`${component}: ${counts.allowed} allowed, ${counts.denied} denied`);
    t.deepEqual(wrong, []);
    // Both happened: the table is no empty one.
    t.true(counts.allowed > 20 && counts.denied > 500, JSON.stringify(counts));
    for (const path of ['/metrics', '/logs/', '/debug/pprof/'])
      t.is((await api.call('GET', path, undefined, { token })).status, 403, path);
  });

  test.serial(`${component}: kubectl auth can-i --list shows what is published, and no way to more`, async (t) => {
    const [api, token] = [openApi(running()), await tokenOf(component)];
    const reviews = '/apis/authorization.k8s.io/v1';
    const list = await api.call(
      'POST',
      `${reviews}/selfsubjectrulesreviews`,
      { spec: { namespace: SYSTEM } },
      { token },
    );
    // kubectl prints this answer. @see kubectl auth can-i --list
    const told = at(list.body, 'status', 'resourceRules');
    t.true(Array.isArray(told), JSON.stringify(list.body));
    t.deepEqual(listRights(told as readonly Rule[]), listRights(rules));
    for (const resourceAttributes of ESCALATIONS) {
      const answer = await api.call(
        'POST',
        `${reviews}/selfsubjectaccessreviews`,
        { spec: { resourceAttributes } },
        { token },
      );
      t.is(at(answer.body, 'status', 'allowed'), false, JSON.stringify(resourceAttributes));
    }
  });
}

import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import { isObject, type JsonObject } from '../../../sim/kube-api/object.ts';
import { makeKeyPair } from '../../../sim/kube-api/pki.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { Answer, ContractClient } from './client.ts';
import { at, type ContractCase, configMap, failure, faultsOf } from './contract-case.ts';

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';

/** What a webhook answers to a request: fields of its response. */
type Respond = (request: JsonObject) => JsonObject;

/** A webhook on a free port; each path is one. */
type Hooks = {
  /** Requests seen by path. */
  readonly seen: { readonly path: string; readonly request: JsonObject }[];
  clientOf(path: string): JsonObject;
};

/** What is particular to webhooks that change what is created. */
export const WEBHOOK_CASES: readonly ContractCase[] = [
  {
    title: 'webhooks: change what is created, one after the other, where rules and selectors are for it',
    run: async (t, api, ns) => {
      const respond = {
        '/a': adds('/metadata/labels', { a: '1' }),
        '/b': adds('/data/b', '2'),
        '/c': adds('/data/c', '3'),
      };
      await withHooks(t, respond, async (hooks) => {
        const first = hook(ns, 'one.a.test', hooks.clientOf('/a'));
        const exists = { matchExpressions: [{ key: 'skip', operator: 'DoesNotExist' }] };
        const second = hook(ns, 'two.b.test', hooks.clientOf('/b'), { objectSelector: exists });
        // Selected by a label that the first one adds.
        const third = hook(ns, 'three.c.test', hooks.clientOf('/c'), { objectSelector: { matchLabels: { a: '1' } } });
        const done = await configured(api, ns, [first, second, third]);
        hooks.seen.length = 0;
        const made = await api.call('POST', path(ns), configMap('m', { a: '1' }));
        t.is(made.status, 201);
        t.deepEqual(at(made.body, 'metadata', 'labels'), { a: '1' });
        t.deepEqual(made.body['data'], { a: '1', b: '2', c: '3' });
        t.deepEqual(
          hooks.seen.map((one) => one.path),
          ['/a', '/b', '/c'],
        );
        const [asked, later] = hooks.seen.map(({ request }) => request);
        t.like(asked, { operation: 'CREATE', namespace: ns, name: 'm', dryRun: false, oldObject: null });
        t.like(asked?.['kind'], { group: '', version: 'v1', kind: 'ConfigMap' });
        t.like(asked?.['resource'], { group: '', version: 'v1', resource: 'configmaps' });
        t.is(at(asked, 'object', 'metadata', 'namespace'), ns);
        t.is(at(asked, 'userInfo', 'username'), 'kubernetes-admin');
        t.deepEqual(at(later, 'object', 'metadata', 'labels'), { a: '1' }, 'each sees what those before it made');
        hooks.seen.length = 0;
        const merge = { contentType: 'application/merge-patch+json' };
        await api.call('PATCH', `${path(ns)}/m`, { data: { c: '3' } }, merge);
        await api.call('POST', `/api/v1/namespaces/${ns}/serviceaccounts`, { metadata: { name: 'other' } });
        await api.call('POST', path('default'), configMap(`other-${ns}`));
        t.deepEqual(hooks.seen, [], 'not for a patch, another resource, another namespace');
        const labels = { skip: '' };
        await api.call('POST', `${path(ns)}?dryRun=All`, configMap('n', { a: '1' }, { labels }));
        t.deepEqual(
          hooks.seen.map((one) => [one.path, one.request['dryRun']]),
          [
            ['/a', true],
            ['/b', true],
            ['/c', true],
          ],
          'the first one has taken the label away that would have kept out the second',
        );
        await done();
      });
    },
  },
  {
    title: 'webhooks: one that refuses, does not answer, or warns',
    run: async (t, api, ns) => {
      const respond = {
        '/refuse': () => ({ allowed: false, status: { code: 403, reason: 'Forbidden', message: 'not today' } }),
        '/mute': () => ({ allowed: false }),
        '/warn': () => ({ allowed: true, warnings: ['mind the gap'] }),
        '/nonsense': () => ({ allowed: true, uid: 'another' }),
      };
      await withHooks(t, respond, async (hooks) => {
        const client = (one: string): JsonObject => hooks.clientOf(one);
        const nobody = { ...client('/x'), url: 'https://127.0.0.1:1/x' };
        const when = (value: string): JsonObject => ({ objectSelector: { matchLabels: { case: value } } });
        const done = await configured(api, ns, [
          hook(ns, 'a.refuse.test', client('/refuse'), when('refuse')),
          hook(ns, 'a.mute.test', client('/mute'), when('mute')),
          hook(ns, 'a.warn.test', client('/warn'), when('warn')),
          hook(ns, 'a.nonsense.test', client('/nonsense'), when('nonsense')),
          hook(ns, 'a.gone.test', nobody, when('gone')),
          hook(ns, 'a.ignored.test', nobody, { ...when('ignored'), failurePolicy: 'Ignore' }),
          hook(ns, 'a.probe.test', client('/warn'), when('probe')),
        ]);
        const make = (value: string): Promise<Answer> =>
          api.call('POST', path(ns), configMap(value, {}, { labels: { case: value } }));
        t.deepEqual(failure(await make('refuse')), [
          403,
          'Forbidden',
          'admission webhook "a.refuse.test" denied the request: not today',
        ]);
        t.deepEqual(failure(await make('mute')).slice(0, 1), [400]);
        t.regex(String((await make('mute')).body['message']), /"a\.mute\.test" denied the request without explanation/);
        const warned = await make('warn');
        t.is(warned.status, 201);
        t.regex(String(warned.headers['warning']), /mind the gap/);
        for (const value of ['nonsense', 'gone']) {
          const failed = await make(value);
          t.deepEqual([failed.status, failed.body['reason']], [500, 'InternalError'], value);
          const text = new RegExp(`^Internal error occurred: failed calling webhook "a\\.${value}\\.test": `);
          t.regex(String(failed.body['message']), text);
        }
        t.is((await make('ignored')).status, 201);
        await done();
      });
    },
  },
  {
    title: 'webhooks: one with IfNeeded is asked again when a later one changed the object',
    run: async (t, api, ns) => {
      const respond = { '/count': counts, '/last': adds('/data/last', 'x') };
      await withHooks(t, respond, async (hooks) => {
        const needed = { reinvocationPolicy: 'IfNeeded' };
        const done = await configured(api, ns, [
          hook(ns, 'a.count.test', hooks.clientOf('/count'), needed),
          hook(ns, 'a.last.test', hooks.clientOf('/last'), needed),
        ]);
        const made = await api.call('POST', path(ns), configMap('m', { count: '0' }));
        t.deepEqual(made.body['data'], { count: '2', last: 'x' });
        await done();
      });
    },
  },
  {
    title: 'webhooks: a configuration gets defaults, and is refused with every fault',
    run: async (t, api, ns) => {
      const bare = { name: 'a.b.test', sideEffects: 'None', admissionReviewVersions: ['v1'] };
      const client = { url: 'https://127.0.0.1:1/x' };
      const made = await api.call('POST', CONFIGURATIONS, configuration(ns, [{ ...bare, clientConfig: client }]));
      t.is(made.status, 201);
      t.like(at(made.body, 'webhooks', 0), {
        failurePolicy: 'Fail',
        matchPolicy: 'Equivalent',
        namespaceSelector: {},
        objectSelector: {},
        reinvocationPolicy: 'Never',
        timeoutSeconds: 10,
      });
      t.is(at(made.body, 'metadata', 'generation'), 1);
      await api.call('DELETE', `${CONFIGURATIONS}/${ns}`);
      const wrong = [
        { ...bare, name: 'short', clientConfig: client, timeoutSeconds: 31 },
        { name: 'a.c.test', clientConfig: { url: 'http://127.0.0.1:1/x' } },
        { ...bare, name: 'a.d.test', clientConfig: {} },
      ];
      t.deepEqual(faultsOf(await api.call('POST', CONFIGURATIONS, configuration(ns, wrong))), [
        422,
        'Invalid',
        [
          'webhooks[0].name FieldValueInvalid',
          'webhooks[0].timeoutSeconds FieldValueInvalid',
          'webhooks[1].admissionReviewVersions FieldValueRequired',
          'webhooks[1].clientConfig.url FieldValueInvalid',
          'webhooks[1].sideEffects FieldValueRequired',
          'webhooks[2].clientConfig FieldValueRequired',
        ],
      ]);
    },
  },
];

function path(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/configmaps`;
}

/** Adds a value by a JSON patch; what is there is replaced. */
function adds(at: string, value: unknown): Respond {
  return () => patchOf([{ op: 'add', path: at, value }]);
}

/** Counts how often it was asked about the object. */
function counts(request: JsonObject): JsonObject {
  const count = Number(at(request, 'object', 'data', 'count')) + 1;
  return patchOf([{ op: 'add', path: '/data/count', value: String(count) }]);
}

function patchOf(patch: readonly JsonObject[]): JsonObject {
  return { allowed: true, patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
}

/** A webhook for ConfigMaps of one namespace. */
function hook(namespace: string, name: string, clientConfig: JsonObject, changes: JsonObject = {}): JsonObject {
  const ofNamespace = { key: 'kubernetes.io/metadata.name', operator: 'In', values: [namespace] };
  return {
    name,
    clientConfig,
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    timeoutSeconds: 5,
    namespaceSelector: { matchExpressions: [ofNamespace] },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
    ...changes,
  };
}

function configuration(name: string, webhooks: readonly JsonObject[]): JsonObject {
  const kind = 'MutatingWebhookConfiguration';
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata: { name }, webhooks };
}

/** Makes a configuration and waits until it is in force; the returned function deletes it. */
async function configured(
  api: ContractClient,
  ns: string,
  webhooks: readonly JsonObject[],
): Promise<() => Promise<void>> {
  const probe = hook(
    ns,
    'is.probe.test',
    { url: 'https://127.0.0.1:1/x' },
    {
      objectSelector: { matchLabels: { 'is-probe': '' } },
    },
  );
  const made = await api.call('POST', CONFIGURATIONS, configuration(ns, [probe, ...webhooks]));
  if (made.status !== 201) throw new Error(JSON.stringify(made.body));
  const isInForce = async (): Promise<boolean> => {
    const labels = { 'is-probe': '', skip: '', case: 'none' };
    return (
      (await api.call('POST', `${path(ns)}?dryRun=All`, configMap('probe', { count: '0' }, { labels }))).status === 500
    );
  };
  await waitUntil(isInForce, { what: 'the webhooks are asked', timeoutMs: 30_000, everyMs: 100 });
  return async () => void (await api.call('DELETE', `${CONFIGURATIONS}/${ns}`));
}

/** Runs a case with webhooks that answer. */
async function withHooks(
  t: ExecutionContext,
  respond: Readonly<Record<string, Respond>>,
  run: (hooks: Hooks) => Promise<void>,
): Promise<void> {
  const folder = createTempDir('webhooks');
  const pair = await makeKeyPair(folder.path, 'webhooks');
  const seen: { readonly path: string; readonly request: JsonObject }[] = [];
  const server = createServer({ cert: pair.cert, key: pair.key }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { pathname } = new URL(request.url ?? '/', 'https://hook');
      const asked = at(JSON.parse(Buffer.concat(chunks).toString()), 'request');
      if (!isObject(asked)) throw new Error('no review');
      seen.push({ path: pathname, request: asked });
      const answer = { uid: asked['uid'], ...respond[pathname]?.(asked) };
      const body = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer };
      response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    });
  });
  t.teardown(() => folder.close());
  const port = await listening(server);
  const caBundle = Buffer.from(pair.cert).toString('base64');
  try {
    await run({ seen, clientOf: (one) => ({ url: `https://127.0.0.1:${port}${one}`, caBundle }) });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
}

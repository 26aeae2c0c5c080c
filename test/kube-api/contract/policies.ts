import type { JsonObject } from '../../../sim/kube-api/object.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { Answer, ContractClient } from './client.ts';
import { at, type ContractCase, configMap, failure } from './contract-case.ts';

const POLICIES = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const BINDINGS = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
const MERGE = { contentType: 'application/merge-patch+json' };

/** What is particular to policies that refuse writes. */
export const POLICY_CASES: readonly ContractCase[] = [
  {
    title: 'policies: refuse what their expression refuses, with its message and reason',
    run: async (t, api, ns) => {
      const change = (data: JsonObject): Promise<Answer> => api.call('PATCH', `${path(ns)}/m`, { data }, MERGE);
      // Nothing is stored: until the policy is in force the change goes through, and the same again is none.
      const tryChange = (data: JsonObject): Promise<Answer> =>
        api.call('PATCH', `${path(ns)}/m?dryRun=All`, { data }, MERGE);
      await api.call('POST', path(ns), configMap('m'));
      const spec = {
        variables: [
          { name: 'before', expression: 'has(oldObject.data) ? dyn(oldObject.data) : dyn({})' },
          { name: 'after', expression: 'has(object.data) ? dyn(object.data) : dyn({})' },
          {
            name: 'changed',
            expression: `{'configmaps': ['a', 'b']}[request.resource.resource].filter(field, field in variables.before ?
              !(field in variables.after) || variables.before[field] != variables.after[field] : field in variables.after)`,
          },
        ],
        validations: [
          {
            expression: 'size(variables.changed) == 0',
            reason: 'Forbidden',
            messageExpression:
              "request.userInfo.username + ' changes ' + variables.changed.join(', ') + ' of ' + request.name",
          },
        ],
      };
      const done = await configured(
        api,
        ns,
        ['UPDATE'],
        spec,
        async () => (await tryChange({ a: '2' })).status === 403,
      );
      const denied = (what: string): string =>
        `configmaps "m" is forbidden: ValidatingAdmissionPolicy '${ns}' with binding '${ns}' denied request: kubernetes-admin changes ${what} of m`;
      t.deepEqual(failure(await change({ a: '2' })), [403, 'Forbidden', denied('a')]);
      t.deepEqual(failure(await change({ a: null, b: '1', c: '1' })), [403, 'Forbidden', denied('a, b')]);
      t.is((await change({ c: '1' })).status, 200);
      t.is((await change({ a: '1' })).status, 200, 'the same value');
      t.is((await tryChange({ a: '2' })).status, 403);
      t.is((await api.call('POST', path(ns), configMap('n'))).status, 201, 'another operation');
      t.is((await api.call('DELETE', `${path(ns)}/n`)).status, 200, 'another operation');
      t.deepEqual(at((await api.call('GET', `${path(ns)}/m`)).body, 'data'), { a: '1', c: '1' });
      await done();
      const isFree = async (): Promise<boolean> => (await change({ a: '3' })).status === 200;
      await waitUntil(isFree, { what: 'the policy is gone', timeoutMs: 30_000, everyMs: 100 });
    },
  },
  {
    title: 'policies: without a message or a reason, and where nothing can be evaluated',
    run: async (t, api, ns) => {
      const make = (name: string): Promise<Answer> => api.call('POST', `${path(ns)}?dryRun=All`, configMap(name));
      const spec = {
        matchConditions: [{ name: 'about-some', expression: "request.name != 'free'" }],
        validations: [
          { expression: "request.name != 'plain'" },
          {
            expression: "request.name != 'told'",
            message: 'not this one',
            messageExpression: "string(object.data['none'])",
          },
          { expression: "request.name != 'error' || object.data['none'] == ''" },
        ],
      };
      const done = await configured(
        api,
        ns,
        ['CREATE', 'DELETE'],
        spec,
        async () => (await make('told')).status === 422,
      );
      const prefix = (name: string): string =>
        `configmaps "${name}" is forbidden: ValidatingAdmissionPolicy '${ns}' with binding '${ns}' denied request: `;
      t.deepEqual(failure(await make('told')), [422, 'Invalid', `${prefix('told')}not this one`]);
      t.deepEqual(failure(await make('plain')), [
        422,
        'Invalid',
        `${prefix('plain')}failed expression: request.name != 'plain'`,
      ]);
      const [status, reason, message] = failure(await make('error'));
      t.deepEqual([status, reason], [422, 'Invalid']);
      t.regex(String(message), /resulted in error: no such key: none/);
      t.is((await make('free')).status, 201);
      t.is((await make('other')).status, 201);
      await done();
    },
  },
];

const path = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;

/** Makes a policy about ConfigMaps of a namespace, and its binding, and waits until it is in force. Returns what takes it away. */
async function configured(
  api: ContractClient,
  ns: string,
  operations: readonly string[],
  spec: { readonly matchConditions?: readonly JsonObject[] } & JsonObject,
  isInForce: () => Promise<boolean>,
): Promise<() => Promise<void>> {
  const metadata = { name: ns };
  const rule = { apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations };
  const policy = await api.call('POST', POLICIES, {
    metadata,
    spec: {
      matchConstraints: { resourceRules: [rule] },
      ...spec,
      matchConditions: [
        { name: 'of-the-namespace', expression: `request.namespace == '${ns}'` },
        ...(spec.matchConditions ?? []),
      ],
    },
  });
  if (policy.status !== 201) throw new Error(String(policy.body['message']));
  await api.call('POST', BINDINGS, { metadata, spec: { policyName: ns, validationActions: ['Deny'] } });
  await waitUntil(isInForce, { what: 'the policy is in force', timeoutMs: 60_000, everyMs: 100 });
  return async () => {
    await api.call('DELETE', `${BINDINGS}/${ns}`);
    await api.call('DELETE', `${POLICIES}/${ns}`);
  };
}

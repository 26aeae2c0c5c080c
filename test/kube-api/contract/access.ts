import { type SeedRole, seedClusterRole } from '../../../sim/kube-api/seed-roles.ts';
import type { ContractClient } from './client.ts';
import { at, type ContractCase, configMap, failure } from './contract-case.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';

/** Gives a ServiceAccount one of the seeds' roles and asks for its token. */
async function tokenOf(api: ContractClient, namespace: string, role: SeedRole): Promise<string> {
  const name = `${role}-${namespace}`;
  await api.call('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: role } });
  await api.call('POST', `${RBAC}/clusterroles`, { ...seedClusterRole(role), metadata: { name } });
  await api.call('POST', `${RBAC}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ kind: 'ServiceAccount', name: role, namespace }],
  });
  const made = await api.call('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${role}/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {},
  });
  const token = String(at(made.body, 'status', 'token'));
  // The authorizer of the real server learns of a binding a moment later.
  for (let tries = 0; tries < 100; tries++) {
    if ((await api.call('GET', '/api/v1/nodes', undefined, { token })).status === 200) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return token;
}

/** Who may do what, by the ClusterRoles that the components run with. */
export const ACCESS_CASES: readonly ContractCase[] = [
  {
    title: 'access: nobody without a valid token',
    run: async (t, api) => {
      const answer = await api.call('GET', '/api/v1/nodes', undefined, { token: 'nonsense' });
      t.deepEqual(failure(answer), [401, 'Unauthorized', 'Unauthorized']);
    },
  },
  {
    title: 'access: of the agent',
    run: async (t, api, ns) => {
      const token = await tokenOf(api, ns, 'tke-eni-agent');
      const user = `system:serviceaccount:${ns}:tke-eni-agent`;
      t.is((await api.call('GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1', undefined, { token })).status, 200);
      const node = await api.call(
        'PATCH',
        '/api/v1/nodes/absent/status',
        {},
        { token, contentType: 'application/merge-patch+json' },
      );
      t.is(node.status, 404);
      t.deepEqual(
        failure(
          await api.call('PATCH', '/api/v1/nodes/absent', {}, { token, contentType: 'application/merge-patch+json' }),
        ),
        [
          403,
          'Forbidden',
          `nodes "absent" is forbidden: User "${user}" cannot patch resource "nodes" in API group "" at the cluster scope`,
        ],
      );
      t.deepEqual(failure(await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('a'), { token })), [
        403,
        'Forbidden',
        `configmaps is forbidden: User "${user}" cannot create resource "configmaps" in API group "" in the namespace "${ns}"`,
      ]);
      const necs = '/apis/networking.tke.cloud.tencent.com/v1/nodeeniconfigs';
      t.deepEqual(failure(await api.call('POST', necs, {}, { token })), [
        403,
        'Forbidden',
        `nodeeniconfigs.networking.tke.cloud.tencent.com is forbidden: User "${user}" cannot create resource "nodeeniconfigs" in API group "networking.tke.cloud.tencent.com" at the cluster scope`,
      ]);
    },
  },
  {
    title: 'access: of ipamd',
    run: async (t, api, ns) => {
      const token = await tokenOf(api, ns, 'tke-eni-ipamd');
      t.is((await api.call('POST', `/api/v1/namespaces/${ns}/configmaps`, configMap('leader'), { token })).status, 201);
      const lease = { metadata: { name: 'l' }, spec: { holderIdentity: 'x' } };
      t.is(
        (await api.call('POST', `/apis/coordination.k8s.io/v1/namespaces/${ns}/leases`, lease, { token })).status,
        403,
      );
      t.is((await api.call('DELETE', `/api/v1/namespaces/${ns}/configmaps/leader`, undefined, { token })).status, 403);
      t.is(
        (await api.call('GET', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', undefined, { token })).status,
        403,
      );
      t.is(
        (await api.call('GET', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.b', undefined, { token }))
          .status,
        404,
      );
    },
  },
  {
    title: 'access: of the scheduler, whose lists are flattened',
    run: async (t, api, ns) => {
      const token = await tokenOf(api, ns, 'tke-eni-ip-scheduler');
      const binding = { metadata: { name: 'absent' }, target: { kind: 'Node', name: 'n1' } };
      t.is((await api.call('POST', `/api/v1/namespaces/${ns}/pods/absent/binding`, binding, { token })).status, 404);
      t.is((await api.call('DELETE', `/api/v1/namespaces/${ns}/pods/absent`, undefined, { token })).status, 403);
    },
  },
  {
    title: 'access: everyone may ask what they may do',
    run: async (t, api, ns) => {
      const token = await tokenOf(api, ns, 'tke-eni-agent');
      const ask = (verb: string, resource: string) => ({
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { verb, resource, group: 'networking.tke.cloud.tencent.com' } },
      });
      const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
      const may = await api.call('POST', path, ask('update', 'nodeeniconfigs'), { token });
      t.deepEqual([may.status, at(may.body, 'status', 'allowed')], [201, true]);
      const mayNot = await api.call('POST', path, ask('create', 'nodeeniconfigs'), { token });
      t.is(at(mayNot.body, 'status', 'allowed'), false);
    },
  },
];

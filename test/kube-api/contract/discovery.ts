import { at, type ContractCase } from './contract-case.ts';

/** What a server says that it serves. */
export const DISCOVERY_CASES: readonly ContractCase[] = [
  {
    title: 'discovery: names groups and resources',
    run: async (t, api) => {
      t.deepEqual((await api.call('GET', '/api')).body['versions'], ['v1']);
      const groups = at((await api.call('GET', '/apis')).body, 'groups');
      const named = Array.isArray(groups) ? groups.map((one) => at(one, 'name')) : [];
      for (const group of ['apps', 'apiextensions.k8s.io', 'coordination.k8s.io', 'rbac.authorization.k8s.io']) {
        t.true(named.includes(group), group);
      }
      const list = await api.call('GET', '/api/v1');
      const resources = at(list.body, 'resources');
      const pods = Array.isArray(resources) ? resources.find((one) => at(one, 'name') === 'pods') : undefined;
      t.like(pods, { singularName: 'pod', namespaced: true, kind: 'Pod', shortNames: ['po'], categories: ['all'] });
      const verbs = at(pods, 'verbs');
      t.deepEqual(Array.isArray(verbs) ? verbs.toSorted() : [], [
        'create',
        'delete',
        'deletecollection',
        'get',
        'list',
        'patch',
        'update',
        'watch',
      ]);
      t.is((await api.call('GET', '/apis/no.such.group/v1')).status, 404);
    },
  },
  {
    title: 'discovery: comes in one answer when asked',
    run: async (t, api) => {
      const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
      const answer = await api.call('GET', '/api', undefined, { accept });
      t.is(answer.body['kind'], 'APIGroupDiscoveryList');
      t.regex(answer.headers['content-type'] ?? '', /as=APIGroupDiscoveryList/);
      const resources = at(answer.body, 'items', 0, 'versions', 0, 'resources');
      const nodes = Array.isArray(resources) ? resources.find((one) => at(one, 'resource') === 'nodes') : undefined;
      t.like(nodes, { scope: 'Cluster', singularResource: 'node', shortNames: ['no'] });
    },
  },
  {
    title: 'discovery: has a version and is healthy',
    run: async (t, api) => {
      t.is(at((await api.call('GET', '/version')).body, 'major'), '1');
      t.is((await api.call('GET', '/readyz')).body['text'], 'ok');
    },
  },
];

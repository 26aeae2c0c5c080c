import { at, type ContractCase, faultsOf } from './contract-case.ts';

const MERGE = { contentType: 'application/merge-patch+json' };

function pod(name: string, spec: object = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'i:1' }], ...spec },
  };
}

function binding(name: string, node: string) {
  return {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name },
    target: { apiVersion: 'v1', kind: 'Node', name: node },
  };
}

/** What is particular to Pods and Nodes. */
export const POD_CASES: readonly ContractCase[] = [
  {
    title: 'pods: get defaults and a status',
    run: async (t, api, ns) => {
      const given = { ...pod('a'), status: { phase: 'Running' } };
      const made = await api.call('POST', `/api/v1/namespaces/${ns}/pods`, given);
      t.is(made.status, 201);
      t.is(at(made.body, 'status', 'phase'), 'Pending');
      t.is(at(made.body, 'status', 'qosClass'), 'BestEffort');
      t.is(at(made.body, 'spec', 'restartPolicy'), 'Always');
      t.is(at(made.body, 'spec', 'terminationGracePeriodSeconds'), 30);
      t.is(at(made.body, 'spec', 'containers', 0, 'imagePullPolicy'), 'IfNotPresent');
    },
  },
  {
    title: 'pods: must have containers',
    run: async (t, api, ns) => {
      const answer = await api.call('POST', `/api/v1/namespaces/${ns}/pods`, pod('a', { containers: [] }));
      t.deepEqual(faultsOf(answer), [422, 'Invalid', ['spec.containers FieldValueRequired']]);
    },
  },
  {
    title: 'pods: request what is only limited',
    run: async (t, api, ns) => {
      const resources = { limits: { 'tke.cloud.tencent.com/eni-ip': '1' } };
      const made = await api.call(
        'POST',
        `/api/v1/namespaces/${ns}/pods`,
        pod('a', { containers: [{ name: 'c', image: 'i', resources }] }),
      );
      t.deepEqual(at(made.body, 'spec', 'containers', 0, 'resources', 'requests'), {
        'tke.cloud.tencent.com/eni-ip': '1',
      });
    },
  },
  {
    title: 'pods: keep their spec',
    run: async (t, api, ns) => {
      await api.call('POST', `/api/v1/namespaces/${ns}/pods`, pod('a'));
      const path = `/api/v1/namespaces/${ns}/pods/a`;
      const moved = await api.call('PATCH', path, { spec: { nodeName: 'n1' } }, MERGE);
      t.deepEqual(faultsOf(moved), [422, 'Invalid', ['spec FieldValueForbidden']]);
      const image = { spec: { containers: [{ name: 'c', image: 'i:2' }] } };
      t.is(
        (await api.call('PATCH', path, image, { contentType: 'application/strategic-merge-patch+json' })).status,
        200,
      );
    },
  },
  {
    title: 'pods: are bound to a node once',
    run: async (t, api, ns) => {
      await api.call('POST', `/api/v1/namespaces/${ns}/pods`, pod('a'));
      const path = `/api/v1/namespaces/${ns}/pods/a`;
      const bound = await api.call('POST', `${path}/binding`, binding('a', 'n1'));
      t.deepEqual([bound.status, bound.body['status']], [201, 'Success']);
      const read = await api.call('GET', path);
      t.is(at(read.body, 'spec', 'nodeName'), 'n1');
      t.is(at(read.body, 'status', 'conditions', 0, 'type'), 'PodScheduled');
      const again = await api.call('POST', `${path}/binding`, binding('a', 'n2'));
      t.deepEqual([again.status, again.body['reason']], [409, 'Conflict']);
      const listed = await api.call('GET', `/api/v1/namespaces/${ns}/pods?fieldSelector=spec.nodeName%3Dn1`);
      t.is(at(listed.body, 'items', 0, 'metadata', 'name'), 'a');
    },
  },
  {
    title: 'pods: change status by their status path alone',
    run: async (t, api, ns) => {
      await api.call('POST', `/api/v1/namespaces/${ns}/pods`, pod('a'));
      const path = `/api/v1/namespaces/${ns}/pods/a`;
      const direct = await api.call('PATCH', path, { status: { phase: 'Running' } }, MERGE);
      t.is(at(direct.body, 'status', 'phase'), 'Pending');
      const patch = { status: { phase: 'Running' }, spec: { nodeName: 'n1' }, metadata: { labels: { l: '1' } } };
      const through = await api.call('PATCH', `${path}/status`, patch, MERGE);
      t.is(through.status, 200);
      t.is(at(through.body, 'status', 'phase'), 'Running');
      t.is(at(through.body, 'spec', 'nodeName'), undefined);
    },
  },
  {
    title: 'pods: go at once without a node, after their grace with one',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/pods`;
      await api.call('POST', path, pod('free'));
      t.is((await api.call('DELETE', `${path}/free`)).body['kind'], 'Pod');
      t.is((await api.call('GET', `${path}/free`)).status, 404);
      await api.call('POST', path, pod('bound', { nodeName: 'n1' }));
      const marked = await api.call('DELETE', `${path}/bound`);
      t.is(at(marked.body, 'metadata', 'deletionGracePeriodSeconds'), 30);
      t.is((await api.call('GET', `${path}/bound`)).status, 200);
      const forced = await api.call('DELETE', `${path}/bound`, {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        gracePeriodSeconds: 0,
      });
      t.is(forced.status, 200);
      t.is((await api.call('GET', `${path}/bound`)).status, 404);
    },
  },
  {
    title: 'nodes: keep a podCIDR that they have, and take extended resources in their status',
    run: async (t, api, ns) => {
      const name = `node-${ns}`;
      await api.call('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } });
      const given = await api.call(
        'PATCH',
        `/api/v1/nodes/${name}`,
        { spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] } },
        MERGE,
      );
      t.is(at(given.body, 'spec', 'podCIDR'), '10.1.0.0/24');
      const other = await api.call(
        'PATCH',
        `/api/v1/nodes/${name}`,
        { spec: { podCIDR: '10.2.0.0/24', podCIDRs: ['10.2.0.0/24'] } },
        MERGE,
      );
      t.deepEqual([other.status, other.body['reason']], [422, 'Invalid']);
      const patch = [{ op: 'add', path: '/status/capacity', value: { 'tke.cloud.tencent.com/eni-ip': '8' } }];
      const capacity = await api.call('PATCH', `/api/v1/nodes/${name}/status`, patch, {
        contentType: 'application/json-patch+json',
      });
      t.is(at(capacity.body, 'status', 'capacity', 'tke.cloud.tencent.com/eni-ip'), '8');
      await api.call('DELETE', `/api/v1/nodes/${name}`);
    },
  },
  {
    title: 'events: are of the namespace of their object',
    run: async (t, api, ns) => {
      const event = (namespace: string) => ({
        metadata: { generateName: 'e-' },
        involvedObject: { kind: 'Pod', namespace, name: 'a' },
        reason: 'R',
        message: 'm',
        type: 'Warning',
      });
      const made = await api.call('POST', `/api/v1/namespaces/${ns}/events`, event(ns));
      t.is(made.status, 201);
      t.is((await api.call('POST', `/api/v1/namespaces/${ns}/events`, event('other'))).status, 422);
      const found = await api.call(
        'GET',
        `/api/v1/namespaces/${ns}/events?fieldSelector=involvedObject.name%3Da,reason%3DR`,
      );
      t.is(at(found.body, 'items', 0, 'metadata', 'name'), at(made.body, 'metadata', 'name'));
    },
  },
];

import type { JsonObject } from '../../../sim/kube-api/object.ts';
import { at, type ContractCase, faultsOf } from './contract-case.ts';

const MERGE = { contentType: 'application/merge-patch+json' };
const PORTS = [{ port: 80 }];

function service(name: string, spec: JsonObject): JsonObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { ports: PORTS, ...spec } };
}

/** What is particular to Services, Endpoints and EndpointSlices. */
export const SERVICE_CASES: readonly ContractCase[] = [
  {
    title: 'services: get defaults, an address and, by their type, ports of nodes',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/services`;
      const status = { loadBalancer: { ingress: [{ ip: '10.0.0.1' }] } };
      const inner = await api.call('POST', path, { ...service('a', {}), status });
      t.is(inner.status, 201);
      t.like(inner.body['spec'], { type: 'ClusterIP', sessionAffinity: 'None', internalTrafficPolicy: 'Cluster' });
      t.like(inner.body['spec'], { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv4'] });
      t.deepEqual(at(inner.body, 'spec', 'ports'), [{ port: 80, protocol: 'TCP', targetPort: 80 }]);
      t.is(at(inner.body, 'spec', 'externalTrafficPolicy'), undefined);
      t.regex(String(at(inner.body, 'spec', 'clusterIP')), /^10\.96\./);
      t.deepEqual(at(inner.body, 'spec', 'clusterIPs'), [at(inner.body, 'spec', 'clusterIP')]);
      t.deepEqual(inner.body['status'], { loadBalancer: {} }, 'who makes it cannot say its status');
      t.is(at(inner.body, 'metadata', 'generation'), undefined);
      const ports = [
        { name: 't', port: 53, targetPort: 'dns' },
        { name: 'u', port: 53, protocol: 'UDP' },
      ];
      const outer = await api.call('POST', path, service('b', { type: 'LoadBalancer', ports }));
      t.like(outer.body['spec'], { externalTrafficPolicy: 'Cluster', allocateLoadBalancerNodePorts: true });
      const numbers = [0, 1].map((index) => Number(at(outer.body, 'spec', 'ports', index, 'nodePort')));
      t.true(
        numbers.every((port) => port >= 30_000 && port <= 32_767),
        numbers.join(),
      );
      t.is(at(outer.body, 'spec', 'ports', 0, 'targetPort'), 'dns');
      t.is(at(outer.body, 'spec', 'healthCheckNodePort'), undefined);
      const without = { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false };
      const direct = await api.call('POST', path, service('c', without));
      t.is(at(direct.body, 'spec', 'ports', 0, 'nodePort'), undefined);
      const sticky = await api.call('POST', path, service('d', { sessionAffinity: 'ClientIP' }));
      t.deepEqual(at(sticky.body, 'spec', 'sessionAffinityConfig'), { clientIP: { timeoutSeconds: 10_800 } });
    },
  },
  {
    title: 'services: a port of nodes and a health port are of one Service, and stay',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/services`;
      const local = { type: 'LoadBalancer', externalTrafficPolicy: 'Local' };
      const made = await api.call('POST', path, service('a', local));
      const [nodePort, health, ip] = [
        at(made.body, 'spec', 'ports', 0, 'nodePort'),
        at(made.body, 'spec', 'healthCheckNodePort'),
        at(made.body, 'spec', 'clusterIP'),
      ];
      t.true(Number(health) >= 30_000 && health !== nodePort);
      const taken = await api.call('POST', path, service('b', { type: 'NodePort', ports: [{ port: 80, nodePort }] }));
      t.deepEqual(faultsOf(taken), [422, 'Invalid', ['spec.ports[0].nodePort FieldValueInvalid']]);
      const outside = { type: 'NodePort', ports: [{ port: 80, nodePort: 8080 }] };
      const beyond = await api.call('POST', path, service('b', outside));
      t.deepEqual(faultsOf(beyond), [422, 'Invalid', ['spec.ports[0].nodePort FieldValueInvalid']]);
      const { resourceVersion } = made.body['metadata'] as JsonObject;
      const plain = { ...service('a', local), metadata: { name: 'a', resourceVersion } };
      const put = await api.call('PUT', `${path}/a`, plain);
      t.is(put.status, 200);
      t.is(at(put.body, 'spec', 'ports', 0, 'nodePort'), nodePort);
      t.is(at(put.body, 'spec', 'healthCheckNodePort'), health);
      t.is(at(put.body, 'spec', 'clusterIP'), ip);
      const moved = await api.call('PATCH', `${path}/a`, { spec: { healthCheckNodePort: 32_700 } }, MERGE);
      t.deepEqual(faultsOf(moved), [422, 'Invalid', ['spec.healthCheckNodePort FieldValueForbidden']]);
      const cluster = await api.call('PATCH', `${path}/a`, { spec: { externalTrafficPolicy: 'Cluster' } }, MERGE);
      t.is(at(cluster.body, 'spec', 'healthCheckNodePort'), undefined);
      t.is((await api.call('DELETE', `${path}/a`)).body['kind'], 'Service');
      const again = await api.call('POST', path, service('b', { type: 'NodePort', ports: [{ port: 80, nodePort }] }));
      t.is(again.status, 201, 'its port is free again');
    },
  },
  {
    title: 'services: the class of a load balancer stays; it goes with the type',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/services`;
      await api.call('POST', path, service('a', { type: 'LoadBalancer', loadBalancerClass: 'a.b/c' }));
      const change = (spec: JsonObject) => api.call('PATCH', `${path}/a`, { spec }, MERGE);
      const fault = [422, 'Invalid', ['spec.loadBalancerClass FieldValueInvalid']];
      t.deepEqual(faultsOf(await change({ loadBalancerClass: 'a.b/d' })), fault);
      t.deepEqual(faultsOf(await change({ loadBalancerClass: null })), fault);
      const inner = await change({ type: 'ClusterIP' });
      t.is(inner.status, 200);
      for (const field of ['loadBalancerClass', 'allocateLoadBalancerNodePorts', 'externalTrafficPolicy']) {
        t.is(at(inner.body, 'spec', field), undefined, field);
      }
      t.is(at(inner.body, 'spec', 'ports', 0, 'nodePort'), undefined);
      t.is(at((await change({ type: 'LoadBalancer' })).body, 'spec', 'loadBalancerClass'), undefined);
      t.deepEqual(faultsOf(await change({ loadBalancerClass: 'a.b/c' })), fault, 'from none to one neither');
    },
  },
  {
    title: 'services: their status changes by its path alone, and goes with the type LoadBalancer',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/services`;
      await api.call('POST', path, service('a', { type: 'LoadBalancer' }));
      const status = { loadBalancer: { ingress: [{ ip: '10.0.0.9' }] } };
      const direct = await api.call('PATCH', `${path}/a`, { status }, MERGE);
      t.deepEqual(direct.body['status'], { loadBalancer: {} });
      const finalizers = ['service.kubernetes.io/load-balancer-cleanup'];
      const patch = { status, spec: { sessionAffinity: 'ClientIP' }, metadata: { finalizers } };
      const through = await api.call('PATCH', `${path}/a/status`, patch, MERGE);
      t.is(through.status, 200);
      t.deepEqual(at(through.body, 'status', 'loadBalancer', 'ingress'), [{ ip: '10.0.0.9', ipMode: 'VIP' }]);
      t.deepEqual(at(through.body, 'metadata', 'finalizers'), finalizers, 'metadata comes along');
      t.is(at(through.body, 'spec', 'sessionAffinity'), 'None', 'and the spec does not');
      const host = { loadBalancer: { ingress: [{ hostname: 'a.b', ipMode: 'VIP' }] } };
      const refused = await api.call('PATCH', `${path}/a/status`, { status: host }, MERGE);
      const field = 'status.loadBalancer.ingress';
      t.deepEqual(faultsOf(refused), [422, 'Invalid', [`${field}[0].ipMode FieldValueForbidden`]]);
      const inner = await api.call('PATCH', `${path}/a`, { spec: { type: 'ClusterIP' } }, MERGE);
      t.deepEqual(inner.body['status'], { loadBalancer: {} });
      const late = await api.call('PATCH', `${path}/a/status`, { status }, MERGE);
      t.deepEqual(faultsOf(late), [422, 'Invalid', [`${field} FieldValueForbidden`]]);
      t.is(at((await api.call('DELETE', `${path}/a`)).body, 'metadata', 'finalizers', 0), finalizers[0]);
      const last = await api.call('PATCH', `${path}/a/status`, { metadata: { finalizers: null } }, MERGE);
      t.is(last.status, 200);
      t.is((await api.call('GET', `${path}/a`)).status, 404, 'the last finalizer lets it go, by the status path too');
    },
  },
  {
    title: 'services: what does not fit is refused',
    run: async (t, api, ns) => {
      const rows: readonly (readonly [JsonObject, string])[] = [
        [{ ports: [] }, 'spec.ports FieldValueRequired'],
        [{ ports: [{ name: 'a', port: 80 }, { port: 81 }] }, 'spec.ports[1].name FieldValueRequired'],
        [
          {
            ports: [
              { name: 'a', port: 80 },
              { name: 'a', port: 81 },
            ],
          },
          'spec.ports[1].name FieldValueDuplicate',
        ],
        [
          {
            ports: [
              { name: 'a', port: 80 },
              { name: 'b', port: 80 },
            ],
          },
          'spec.ports[1] FieldValueDuplicate',
        ],
        [{ ports: [{ port: 0, targetPort: 80 }] }, 'spec.ports[0].port FieldValueInvalid'],
        [{ ports: [{ port: 80, nodePort: 30_001 }] }, 'spec.ports[0].nodePort FieldValueForbidden'],
        [{ type: 'Balancer' }, 'spec.type FieldValueNotSupported'],
        [{ externalTrafficPolicy: 'Local' }, 'spec.externalTrafficPolicy FieldValueInvalid'],
        [{ loadBalancerClass: 'a/b' }, 'spec.loadBalancerClass FieldValueForbidden'],
        [{ allocateLoadBalancerNodePorts: true }, 'spec.allocateLoadBalancerNodePorts FieldValueForbidden'],
        [{ loadBalancerSourceRanges: ['10.0.0.0/8'] }, 'spec.LoadBalancerSourceRanges FieldValueForbidden'],
        [
          { type: 'LoadBalancer', loadBalancerSourceRanges: ['ten'] },
          'spec.LoadBalancerSourceRanges[0] FieldValueInvalid',
        ],
        [
          { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_401 } } },
          'spec.sessionAffinityConfig.clientIP.timeoutSeconds FieldValueInvalid',
        ],
        [{ type: 'LoadBalancer', healthCheckNodePort: 30_002 }, 'spec.healthCheckNodePort FieldValueInvalid'],
      ];
      for (const [spec, fault] of rows) {
        const answer = await api.call('POST', `/api/v1/namespaces/${ns}/services`, service('a', spec));
        t.deepEqual(faultsOf(answer), [422, 'Invalid', [fault]], JSON.stringify(spec));
      }
      const made = await api.call('POST', `/api/v1/namespaces/${ns}/services`, service('a', {}));
      t.is(made.status, 201);
      const moved = { spec: { clusterIP: '10.96.0.250', clusterIPs: ['10.96.0.250'] } };
      const answer = await api.call('PATCH', `/api/v1/namespaces/${ns}/services/a`, moved, MERGE);
      t.deepEqual(faultsOf(answer), [422, 'Invalid', ['spec.clusterIPs[0] FieldValueInvalid']]);
    },
  },
  {
    title: 'endpoints and endpointslices: are kept as they are given, and found by their Service',
    run: async (t, api, ns) => {
      const endpoints = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'a' } };
      const subsets = [{ addresses: [{ ip: '10.0.0.5' }], ports: [{ name: 'p', port: 80, protocol: 'TCP' }] }];
      const old = await api.call('POST', `/api/v1/namespaces/${ns}/endpoints`, { ...endpoints, subsets });
      t.deepEqual([old.status, old.body['subsets']], [201, subsets]);
      const slice = {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'a-1', labels: { 'kubernetes.io/service-name': 'a' } },
        addressType: 'IPv4',
        endpoints: [{ addresses: ['10.0.0.5'], conditions: { ready: true } }],
        ports: [{ name: 'p', port: 80, protocol: 'TCP' }],
      };
      const path = `/apis/discovery.k8s.io/v1/namespaces/${ns}/endpointslices`;
      t.is((await api.call('POST', path, slice)).status, 201);
      const found = await api.call('GET', `${path}?labelSelector=kubernetes.io%2Fservice-name%3Da`);
      t.deepEqual(at(found.body, 'items', 0, 'endpoints'), slice.endpoints);
    },
  },
];

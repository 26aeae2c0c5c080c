import { INGRESS_CLASSES, INGRESSES } from '../../../kube/resource-types.ts';
import type { JsonObject } from '../../../sim/kube-api/object.ts';
import type { Answer } from './client.ts';
import { at, type ContractCase } from './contract-case.ts';

const MERGE = { contentType: 'application/merge-patch+json' };
const BACKEND = { service: { name: 'web', port: { number: 80 } } };
const pathsOf = (ns: string): string =>
  `/apis/${INGRESSES.group}/${INGRESSES.version}/namespaces/${ns}/${INGRESSES.plural}`;
const CLASSES = `/apis/${INGRESS_CLASSES.group}/${INGRESS_CLASSES.version}/${INGRESS_CLASSES.plural}`;

function ingress(name: string, spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name, ...metadata }, spec };
}

function withPath(path: JsonObject): JsonObject {
  return { rules: [{ http: { paths: [{ backend: BACKEND, ...path }] } }] };
}

function fieldsOf(answer: Answer): readonly string[] {
  const causes = at(answer.body, 'details', 'causes');
  const fields = Array.isArray(causes) ? causes.map((one) => String(at(one, 'field'))) : [];
  return [...new Set(fields)].toSorted();
}

const FAULTS: readonly (readonly [spec: JsonObject, fields: readonly string[]])[] = [
  [{}, ['spec']],
  [{ rules: [{ host: '10.0.0.1' }] }, ['spec.rules[0].host']],
  [{ rules: [{ host: 'A_b' }, { host: 'a.*' }] }, ['spec.rules[0].host', 'spec.rules[1].host']],
  [{ rules: [{ http: { paths: [] } }] }, ['spec.rules[0].http.paths']],
  [withPath({ path: '/' }), ['spec.rules[0].http.paths[0].pathType']],
  [withPath({ path: '/', pathType: 'Regex' }), ['spec.rules[0].http.paths[0].pathType']],
  [withPath({ path: 'a', pathType: 'Exact' }), ['spec.rules[0].http.paths[0].path']],
  [withPath({ path: '~ a', pathType: 'ImplementationSpecific' }), ['spec.rules[0].http.paths[0].path']],
  [withPath({ path: '/a/..', pathType: 'Prefix' }), ['spec.rules[0].http.paths[0].path']],
  [{ defaultBackend: {} }, ['spec.defaultBackend']],
  [{ defaultBackend: { service: { name: 'a', port: {} } } }, ['spec.defaultBackend']],
  [{ defaultBackend: BACKEND, tls: [{ hosts: ['_'] }] }, ['spec.tls[0].hosts[0]']],
];

/** What is particular to Ingresses, their classes, and the Secrets of TLS. */
export const INGRESS_CASES: readonly ContractCase[] = [
  {
    title: 'ingresses: the status is of the status path alone',
    run: async (t, api, ns) => {
      const path = pathsOf(ns);
      const status = { loadBalancer: { ingress: [{ ip: '10.0.0.1' }] } };
      const spec = withPath({ path: '/', pathType: 'Prefix' });
      const made = await api.call('POST', path, { ...ingress('a', spec), status });
      t.is(made.status, 201);
      t.deepEqual(made.body['status'], { loadBalancer: {} });
      t.is(at(made.body, 'metadata', 'generation'), 1);
      const written = await api.call('PATCH', `${path}/a/status`, { status }, MERGE);
      t.deepEqual(written.body['status'], status);
      t.is(at(written.body, 'metadata', 'generation'), 1);
      const other = await api.call(
        'PATCH',
        `${path}/a`,
        { status: { loadBalancer: {} }, spec: { rules: [{ host: 'a.b' }] } },
        MERGE,
      );
      t.deepEqual(other.body['status'], status);
      t.is(at(other.body, 'metadata', 'generation'), 2);
    },
  },
  {
    title: 'ingresses: what is refused',
    run: async (t, api, ns) => {
      for (const [spec, fields] of FAULTS) {
        const answer = await api.call('POST', pathsOf(ns), ingress('a', spec));
        t.is(answer.status, 422, JSON.stringify(spec));
        t.deepEqual(fieldsOf(answer), fields);
      }
      const annotations = { 'kubernetes.io/ingress.class': 'qcloud' };
      const both = (ingressClassName: string) =>
        api.call('POST', pathsOf(ns), ingress('a', { defaultBackend: BACKEND, ingressClassName }, { annotations }));
      const differing = await both('other');
      t.is(differing.status, 422);
      t.deepEqual(fieldsOf(differing), ['annotations.kubernetes.io/ingress.class']);
      t.is((await both('qcloud')).status, 201, 'the same in both');
    },
  },
  {
    title: 'ingresses: the table of kubectl',
    run: async (t, api, ns) => {
      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
      const rules = ['a.example', 'b.example', 'c.example', 'd.example'].map((host) => ({ host }));
      const tls = [{ hosts: ['a.example'], secretName: 'a' }];
      await api.call('POST', pathsOf(ns), ingress('a', { ingressClassName: 'qcloud', rules, tls }));
      await api.call('POST', pathsOf(ns), ingress('b', { defaultBackend: BACKEND }));
      const status = { loadBalancer: { ingress: [{ ip: '10.0.0.1' }] } };
      await api.call('PATCH', `${pathsOf(ns)}/b/status`, { status }, MERGE);
      const { body } = await api.call('GET', pathsOf(ns), undefined, { accept });
      const columns = at(body, 'columnDefinitions');
      t.deepEqual(Array.isArray(columns) ? columns.map((one) => at(one, 'name')) : columns, [
        ...['Name', 'Class', 'Hosts', 'Address', 'Ports', 'Age'],
      ]);
      const rows = [0, 1].map((row) => [0, 1, 2, 3, 4].map((cell) => at(body, 'rows', row, 'cells', cell)));
      t.deepEqual(rows, [
        ['a', 'qcloud', 'a.example,b.example,c.example + 1 more...', '', '80, 443'],
        ['b', '<none>', '*', '10.0.0.1', '80'],
      ]);
    },
  },
  {
    title: 'ingressclasses: the controller stays',
    run: async (t, api, ns) => {
      const spec = { controller: 'example.com/a' };
      const made = await api.call('POST', CLASSES, {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'IngressClass',
        metadata: { name: ns },
        spec,
      });
      t.is(made.status, 201);
      const changed = await api.call('PATCH', `${CLASSES}/${ns}`, { spec: { controller: 'example.com/b' } }, MERGE);
      t.is(changed.status, 422);
      t.deepEqual(fieldsOf(changed), ['spec.controller']);
    },
  },
  {
    title: 'secrets: one of TLS has two keys, and the type stays',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/secrets`;
      const type = 'kubernetes.io/tls';
      const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, type };
      const bad = await api.call('POST', path, { ...secret, stringData: { 'tls.crt': 'a' } });
      t.deepEqual(fieldsOf(bad), ['data[tls.key]']);
      const made = await api.call('POST', path, { ...secret, stringData: { 'tls.crt': 'a', 'tls.key': 'b' } });
      t.deepEqual(made.body['data'], { 'tls.crt': 'YQ==', 'tls.key': 'Yg==' });
      const rotated = await api.call('PATCH', `${path}/a`, { stringData: { 'tls.crt': 'c' } }, MERGE);
      t.deepEqual(rotated.body['data'], { 'tls.crt': 'Yw==', 'tls.key': 'Yg==' });
      t.is((await api.call('PATCH', `${path}/a`, { type: 'Opaque' }, MERGE)).status, 422);
    },
  },
];

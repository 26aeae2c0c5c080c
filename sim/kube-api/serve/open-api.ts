import { createHash } from 'node:crypto';
import type { Api } from '../api.ts';
import { type ApiResource, groupVersion } from '../resources/api-resource.ts';
import { VERSION_INFO } from './discovery.ts';

/** Answers `/openapi/v2` and `/openapi/v3…`; undefined for any other path. As much as kubectl needs, no more. */
export function describeApi(api: Api, path: string): unknown {
  const resources = api.registry.all();
  if (path === '/openapi/v2') return { swagger: '2.0', info: INFO, paths: {}, definitions: {} };
  if (path === '/openapi/v3') {
    const documents = [...new Set(resources.map(folderOf))].map((folder) => {
      const hash = createHash('sha256')
        .update(JSON.stringify(documentOf(resources, folder)))
        .digest('hex')
        .slice(0, 32);
      return [folder, { serverRelativeURL: `/openapi/v3/${folder}?hash=${hash}` }];
    });
    return { paths: Object.fromEntries(documents) };
  }
  const folder = path.startsWith('/openapi/v3/') ? path.slice('/openapi/v3/'.length) : '';
  return resources.some((one) => folderOf(one) === folder) ? documentOf(resources, folder) : undefined;
}

const INFO = { title: 'Kubernetes', version: VERSION_INFO.gitVersion };

function folderOf(resource: ApiResource): string {
  return `${resource.group === '' ? 'api' : 'apis'}/${groupVersion(resource)}`;
}

function documentOf(all: readonly ApiResource[], folder: string) {
  const resources = all.filter((one) => folderOf(one) === folder);
  return {
    openapi: '3.0.0',
    info: INFO,
    paths: Object.fromEntries(resources.flatMap((one) => pathsOf(one, folder))),
    components: { schemas: Object.fromEntries(resources.map((one) => [schemaName(one), schemaOf(one)])) },
  };
}

function schemaName({ group, version, kind }: ApiResource): string {
  const reversed = group === '' ? 'io.k8s.api.core' : group.split('.').reverse().join('.');
  return `${reversed}.${version}.${kind}`;
}

function gvkOf({ group, version, kind }: ApiResource) {
  return { group, version, kind };
}

/** Of built-in resources nothing is said beyond the head: their objects may have any field. */
function schemaOf(resource: ApiResource) {
  const head = { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { type: 'object' } };
  const own = resource.schema ?? { 'x-kubernetes-preserve-unknown-fields': true };
  return {
    ...own,
    type: 'object',
    properties: { ...own.properties, ...head },
    'x-kubernetes-group-version-kind': [gvkOf(resource)],
  };
}

/** kubectl looks here whether PATCH knows fieldValidation, and how a kind's path reads. */
function pathsOf(resource: ApiResource, folder: string): readonly (readonly [string, unknown])[] {
  const base = `/${folder}/${resource.namespaced ? 'namespaces/{namespace}/' : ''}${resource.plural}`;
  const gvk = { 'x-kubernetes-group-version-kind': gvkOf(resource) };
  const parameters = ['dryRun', 'fieldManager', 'fieldValidation', 'force'].map((name) => ({
    name,
    in: 'query',
    schema: { type: name === 'force' ? 'boolean' : 'string', uniqueItems: true },
  }));
  const ref = { $ref: `#/components/schemas/${schemaName(resource)}` };
  const content = { 'application/json': { schema: ref } };
  const answer = { responses: { 200: { description: 'OK', content } } };
  const operation = (action: string) => ({ ...answer, parameters, 'x-kubernetes-action': action, ...gvk });
  const patchBody = {
    requestBody: {
      content: Object.fromEntries(
        ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml'].map((type) => [
          type,
          { schema: {} },
        ]),
      ),
    },
  };
  return [
    [base, { get: operation('list'), post: { ...operation('post'), requestBody: { content } } }],
    [
      `${base}/{name}`,
      {
        get: operation('get'),
        put: { ...operation('put'), requestBody: { content } },
        patch: { ...operation('patch'), ...patchBody },
        delete: operation('delete'),
      },
    ],
  ];
}

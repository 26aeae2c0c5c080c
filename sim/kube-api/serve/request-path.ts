/** What a path of the resource API names. */
export type RequestPath = {
  readonly group: string;
  readonly version: string;
  readonly namespace: string | undefined;
  readonly resource: string;
  readonly name: string;
  readonly subresource: string;
};

/** Reads `/api/v1/namespaces/ns/pods/x/status` and the like; undefined for any other path. */
export function parseRequestPath(path: string): RequestPath | undefined {
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decodeURIComponent);
  const isCore = parts[0] === 'api';
  if (!isCore && parts[0] !== 'apis') return undefined;
  const [group, version, rest] = isCore ? ['', parts[1], parts.slice(2)] : [parts[1], parts[2], parts.slice(3)];
  if (group === undefined || version === undefined || rest.length === 0) return undefined;
  const head = { group, version };
  // A namespace's own subresources are not a namespaced resource.
  const isInNamespace = rest[0] === 'namespaces' && rest.length > 2 && !['status', 'finalize'].includes(rest[2] ?? '');
  const [resource = '', name = '', ...more] = isInNamespace ? rest.slice(2) : rest;
  const namespace = isInNamespace ? rest[1] : resource === 'namespaces' && name !== '' ? name : undefined;
  return { ...head, namespace, resource, name, subresource: more.join('/') };
}

/** Returns the verb that a method stands for, as RBAC names it. */
export function verbOf(method: string, path: RequestPath, query: URLSearchParams): string {
  const isWatch = ['true', '1'].includes(query.get('watch') ?? '');
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (isWatch) return 'watch';
      return path.name === '' ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return path.name === '' ? 'deletecollection' : 'delete';
    default:
      return '';
  }
}

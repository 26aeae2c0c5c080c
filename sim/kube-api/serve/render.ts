import { ApiError } from '../api-error.ts';
import { isObject, type KubeObject } from '../object.ts';
import type { ApiResource } from '../resources/api-resource.ts';
import { type IncludeObject, partialMetadata, tableOf } from '../table/table.ts';

/** How a client wants objects: whole, as a table, or their metadata alone. */
type Form = 'object' | 'table' | 'metadata';

/** Reads the form that an Accept header wants: the first of its kinds that this server has. */
export function formOf(accept: string): Form {
  for (const part of accept.split(',')) {
    if (/as=Table\b/.test(part)) return 'table';
    if (/as=PartialObjectMetadata(List)?\b/.test(part)) return 'metadata';
    if (/application\/json|\*\/\*/.test(part)) return 'object';
  }
  return 'object';
}

/** What shapes an answer beside the form. */
type RenderOptions = { readonly include: IncludeObject; readonly withHeader: boolean; readonly nowMs: number };

/** Turns an object or a list into the form that a client wants; a Status stays what it is. */
export function render(resource: ApiResource, body: unknown, form: Form, options: RenderOptions): unknown {
  if (form === 'object' || !isObject(body) || body['kind'] === 'Status') return body;
  const { items } = body;
  const meta = isObject(body['metadata']) ? body['metadata'] : {};
  // Lists are made by this server, of its objects; anything else is one object.
  const objects = Array.isArray(items) ? (items as readonly KubeObject[]) : [body as KubeObject];
  if (form === 'table') {
    const listMeta = Array.isArray(items) ? meta : { resourceVersion: meta['resourceVersion'] };
    return tableOf(resource, objects, listMeta, options);
  }
  if (!Array.isArray(items)) return partialMetadata(body as KubeObject);
  const partial = { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1', metadata: meta };
  return { ...partial, items: objects.map(partialMetadata) };
}

/** Reads how the rows of a table shall carry their objects. @throws ApiError BadRequest */
export function includeOf(query: URLSearchParams): IncludeObject {
  const asked = query.get('includeObject') ?? 'Metadata';
  if (asked === 'None' || asked === 'Metadata' || asked === 'Object') return asked;
  throw new ApiError(400, 'BadRequest', `unrecognized includeObject value: ${JSON.stringify(asked)}`);
}

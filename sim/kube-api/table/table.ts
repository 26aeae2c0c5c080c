import type { KubeObject } from '../object.ts';
import type { ApiResource } from '../resources/api-resource.ts';

/** How the rows of a table carry their objects. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** Makes the table that `kubectl get` prints. @see meta.k8s.io/v1 Table */
export function tableOf(
  resource: ApiResource,
  objects: readonly KubeObject[],
  listMeta: Readonly<Record<string, unknown>>,
  options: { readonly include: IncludeObject; readonly withHeader: boolean; readonly nowMs: number },
) {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: listMeta,
    columnDefinitions: options.withHeader
      ? resource.columns.map(({ name, type, format, priority, description }) => ({
          name,
          type,
          format: format ?? '',
          description: description ?? '',
          priority: priority ?? 0,
        }))
      : null,
    rows: objects.map((object) => ({
      cells: resource.columns.map((column) => column.cell(object, options.nowMs)),
      ...(options.include === 'None'
        ? {}
        : { object: options.include === 'Object' ? object : partialMetadata(object) }),
    })),
  };
}

/** Returns an object with nothing but its metadata. @see meta.k8s.io/v1 PartialObjectMetadata */
export function partialMetadata(object: KubeObject) {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata };
}

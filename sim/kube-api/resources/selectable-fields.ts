import { isObject, type KubeObject } from '../object.ts';
import { OWN, type SelectableFields } from '../selector.ts';

const META: SelectableFields = {
  'metadata.name': (object) => object.metadata.name,
  'metadata.namespace': (object) => object.metadata.namespace ?? '',
};

const MORE: Readonly<Record<string, readonly string[]>> = {
  '/pods': [
    'spec.nodeName',
    'spec.restartPolicy',
    'spec.schedulerName',
    'spec.serviceAccountName',
    'status.phase',
    'status.podIP',
    'status.nominatedNodeName',
  ],
  '/nodes': ['spec.unschedulable'],
  '/namespaces': ['status.phase'],
  '/secrets': ['type'],
  '/services': ['spec.clusterIP', 'spec.type'],
  '/events': [
    'involvedObject.kind',
    'involvedObject.namespace',
    'involvedObject.name',
    'involvedObject.uid',
    'involvedObject.apiVersion',
    'involvedObject.resourceVersion',
    'involvedObject.fieldPath',
    'reason',
    'reportingComponent',
    'source',
    'type',
  ],
};

/** Returns the fields by which a resource may be selected, as the real server has them. */
export function selectableFields(storageKey: string, isCustom: boolean): SelectableFields {
  const more = MORE[storageKey] ?? [];
  const own: SelectableFields = isCustom || more.length > 0 ? { [OWN]: () => '' } : {};
  return {
    ...META,
    ...own,
    ...Object.fromEntries(more.map((path) => [path, (object: KubeObject) => read(object, path)])),
  };
}

function read(object: KubeObject, path: string): string {
  const value = path.split('.').reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), object);
  if (path === 'spec.unschedulable') return String(value === true);
  if (path === 'source') return isObject(value) ? String(value['component'] ?? '') : '';
  return value === undefined ? '' : String(value);
}

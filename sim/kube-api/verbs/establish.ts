import type { Api } from '../api.ts';
import { isObject, type KubeObject } from '../object.ts';
import { DEFINITIONS } from '../resources/registry.ts';
import { timestamp } from './commit.ts';

/** Says in the status of a definition that its resources are served; the real server takes a moment for that. */
export function establish(api: Api, definition: KubeObject): KubeObject {
  const lastTransitionTime = timestamp(api.nowMs());
  const spec = isObject(definition['spec']) ? definition['spec'] : {};
  const versions = Array.isArray(spec['versions']) ? spec['versions'].filter(isObject) : [];
  const stored = versions.find((version) => version['storage'] === true);
  const status = {
    conditions: [
      {
        type: 'NamesAccepted',
        status: 'True',
        lastTransitionTime,
        reason: 'NoConflicts',
        message: 'no conflicts found',
      },
      {
        type: 'Established',
        status: 'True',
        lastTransitionTime,
        reason: 'InitialNamesAccepted',
        message: 'the initial names have been accepted',
      },
    ],
    acceptedNames: spec['names'],
    storedVersions: [stored?.['name']],
  };
  return api.store.put(DEFINITIONS, { ...definition, status });
}

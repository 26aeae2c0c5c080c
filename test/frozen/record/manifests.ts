import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { RESOURCE_KINDS } from '../../../crd/kinds.ts';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';
import { renderValuesSchema } from '../../../tools/chart/values-schema.ts';
import { objectsOf } from '../../conf/read-manifests.ts';
import { at } from '../../kube-api/contract/contract-case.ts';

const CONF = join(import.meta.dirname, '..', '..', '..', 'conf');

/** Returns each definition of our kinds, by its name, without a word of prose. */
export function recordDefinitions(): object {
  const definitions = RESOURCE_KINDS.map((kind) => customResourceDefinition(kind));
  return Object.fromEntries(definitions.map((definition) => [definition.metadata.name, withoutProse(definition)]));
}

/** Leaves out descriptions and messages of rules; a property of such a name, which has a schema and no text, stays. */
function withoutProse(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutProse);
  if (!isObject(value)) return value;
  const isProse = (key: string) => key === 'description' || (key === 'message' && 'rule' in value);
  const kept = Object.entries(value).filter(([key, item]) => !isProse(key) || typeof item !== 'string');
  return Object.fromEntries(kept.map(([key, item]) => [key, withoutProse(item)]));
}

/** Lists the objects of the manifests with what others name of them: roles, links between them, Pods. */
export function recordManifests(): object {
  const objects = globSync('kubernetes/**/*.yaml', { cwd: CONF })
    .toSorted()
    .filter((path) => !path.endsWith('kustomization.yaml'))
    .flatMap((path) => objectsOf(readFileSync(join(CONF, path), 'utf8')).map((object) => rowOf(dirname(path), object)));
  return Object.fromEntries(objects);
}

/** People name the folder, to `kubectl apply -k`, and the object in it; which file that is in is nobody else's affair. */
function rowOf(folder: string, object: JsonObject): readonly [string, object] {
  const { kind, metadata } = object;
  const { name = '', namespace = '', labels } = isObject(metadata) ? metadata : {};
  const key = [folder, kind, namespace, name].filter((part) => part !== '').join(' ');
  return [key, { labels, ...partsOf(object) }];
}

const PLAIN = ['rules', 'roleRef', 'subjects', 'data', 'webhooks', 'extenders'] as const;

function partsOf(object: JsonObject): object {
  const plain = PLAIN.flatMap((key) => (object[key] === undefined ? [] : [[key, object[key]] as const]));
  const pod = at(object, 'spec', 'template', 'spec');
  return {
    ...Object.fromEntries(plain),
    ...(object['kind'] === 'Service' ? { spec: object['spec'] } : {}),
    ...(isObject(pod) ? { pod: podOf(pod, at(object, 'spec', 'template', 'metadata', 'labels')) } : {}),
  };
}

/** What is named from outside: labels, ports, where probes ask, what is mounted of the node, objects that must be there. */
function podOf(pod: JsonObject, labels: unknown): object {
  const containers = listOf(pod['containers']).map(({ name, ports, livenessProbe, readinessProbe }) => [
    String(name),
    { ports, livenessProbe: at(livenessProbe, 'httpGet'), readinessProbe: at(readinessProbe, 'httpGet') },
  ]);
  const volumes = listOf(pod['volumes']).map(({ name, ...source }) => [String(name), source]);
  const { serviceAccountName, priorityClassName } = pod;
  return {
    ...{ labels, serviceAccountName, priorityClassName },
    containers: Object.fromEntries(containers),
    volumes: Object.fromEntries(volumes),
  };
}

function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Lists the alerts by their group, with how grave each is. */
export function recordAlerts(): object {
  const document: unknown = parse(readFileSync(join(CONF, 'monitoring', 'alerts.yaml'), 'utf8'));
  const groups = listOf(at(document, 'spec', 'groups')).map(({ name, rules }) => [
    String(name),
    Object.fromEntries(listOf(rules).map((rule) => [String(rule['alert']), at(rule, 'labels', 'severity')])),
  ]);
  return Object.fromEntries(groups);
}

/** Returns the schema of the chart's values, without a word of prose. */
export function recordChartValues(): object {
  const values = readFileSync(join(CONF, 'helm', 'tke-eni', 'values.yaml'), 'utf8');
  const schema: unknown = JSON.parse(renderValuesSchema(values));
  const { title: _title, ...rest } = isObject(schema) ? schema : {};
  return Object(withoutProse(rest));
}

import type { ExecutionContext } from 'ava';
import { isObject, type JsonObject } from '../../../sim/kube-api/object.ts';
import type { Answer, ContractClient } from './client.ts';

/** One thing that any API server must do. It has a namespace of its own. */
export type ContractCase = {
  readonly title: string;
  readonly run: (t: ExecutionContext, api: ContractClient, namespace: string) => Promise<void>;
};

/** Makes a ConfigMap. */
export function configMap(name: string, data: JsonObject = { a: '1' }, metadata: JsonObject = {}): JsonObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data };
}

/** Reads a value by the names on its path. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, key) => {
    if (Array.isArray(inner)) return inner[Number(key)];
    return isObject(inner) ? inner[String(key)] : undefined;
  }, value);
}

/** Returns the resourceVersion of an answer's object. */
export function versionOf(answer: Answer): string {
  return String(at(answer.body, 'metadata', 'resourceVersion'));
}

/** Returns what tells a failure apart: code, reason and message. */
export function failure(answer: Answer): readonly unknown[] {
  return [answer.status, answer.body['reason'], answer.body['message']];
}

/** Returns code, reason and the fields that are named as wrong, with why; sorted. */
export function faultsOf(answer: Answer): readonly unknown[] {
  const causes = at(answer.body, 'details', 'causes');
  const lines = Array.isArray(causes)
    ? causes.map((one) => `${String(at(one, 'field'))} ${String(at(one, 'reason'))}`)
    : [];
  // Some the real server says twice.
  return [answer.status, answer.body['reason'], [...new Set(lines)].sort()];
}

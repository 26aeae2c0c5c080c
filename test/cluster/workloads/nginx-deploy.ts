import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { isObject } from '../../../sim/support/netns.ts';
import { WEB_IMAGE } from '../small-images.ts';

/** The Deployment that users of hybrid clusters are shown for a Pod with an address of the VPC, byte for byte. */
const TEXT = readFileSync(new URL('nginx-deploy.yaml', import.meta.url), 'utf8');

/** Lines of the text that a cluster without a registry needs otherwise, beside the image; the Secret is not there. */
const REPLACED = [
  ['imagePullPolicy: Always', 'imagePullPolicy: Never'],
  ['- name: qcloudregistrykey', '- name: none'],
] as const;

/** Makes that Deployment with another image, pull policy and pull secret. @throws Error when the text lacks one of them */
export function nginxDeploy(image = WEB_IMAGE): string {
  return [['- image: nginx', `- image: ${image}`] as const, ...REPLACED].reduce((text, [from, to]) => {
    if (text.split(from).length !== 2) throw new Error(`expected '${from}' once in nginx-deploy.yaml`);
    return text.replace(from, to);
  }, TEXT);
}

/** Lists the fields of the shown Deployment that an object has otherwise: `spec.replicas: 1 is 2`. */
export function differencesFromShown(object: unknown): readonly string[] {
  return differences('', parse(TEXT), object);
}

function differences(path: string, shown: unknown, has: unknown): readonly string[] {
  if (isObject(shown) || Array.isArray(shown)) {
    const inner: unknown = has;
    return Object.entries(shown).flatMap(([key, value]) =>
      differences(path === '' ? key : `${path}.${key}`, value, isBranch(inner) ? Reflect.get(inner, key) : undefined),
    );
  }
  // The API server leaves out what is null.
  return shown === (has ?? null) ? [] : [`${path}: ${String(shown)} is ${String(has)}`];
}

function isBranch(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

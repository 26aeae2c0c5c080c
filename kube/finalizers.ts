import type { KubeObject } from './kube-client.ts';

/** Tells whether an object is kept from going by a finalizer. Pure. */
export function hasFinalizer(object: KubeObject, finalizer: string): boolean {
  return object.metadata.finalizers?.includes(finalizer) ?? false;
}

/** Adds a finalizer; the same object when it is there. The API server refuses it on objects that are going. Pure. */
export function withFinalizer(object: KubeObject, finalizer: string): KubeObject {
  if (hasFinalizer(object, finalizer)) return object;
  return withFinalizers(object, [...(object.metadata.finalizers ?? []), finalizer]);
}

/** Takes a finalizer away; the same object when it is not there. Pure. */
export function withoutFinalizer(object: KubeObject, finalizer: string): KubeObject {
  if (!hasFinalizer(object, finalizer)) return object;
  return withFinalizers(
    object,
    (object.metadata.finalizers ?? []).filter((one) => one !== finalizer),
  );
}

function withFinalizers(object: KubeObject, finalizers: readonly string[]): KubeObject {
  return { ...object, metadata: { ...object.metadata, finalizers } };
}

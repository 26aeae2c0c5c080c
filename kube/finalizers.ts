import type { KubeObject } from './kube-client.ts';

/** Reports whether an object has a finalizer, which delays its deletion. */
export function hasFinalizer(object: KubeObject, finalizer: string): boolean {
  return object.metadata.finalizers?.includes(finalizer) ?? false;
}

/** Adds a finalizer; returns the same object when it is present. The API server refuses to add one during deletion. */
export function withFinalizer(object: KubeObject, finalizer: string): KubeObject {
  if (hasFinalizer(object, finalizer)) return object;
  return withFinalizers(object, [...(object.metadata.finalizers ?? []), finalizer]);
}

/** Removes a finalizer; returns the same object when it is absent. */
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

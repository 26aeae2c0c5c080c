/** Returns the settings that differ, with a health check as a whole; undefined: none. Absent ones are not compared. */
export function changesOf<T extends object>(wanted: T, present: T): T | undefined {
  const changes = Object.entries(wanted).filter(([key, value]) => !hasSetting(value, Reflect.get(present, key)));
  // Each entry is one of the wanted settings.
  return changes.length === 0 ? undefined : (Object.fromEntries(changes) as T);
}

/** Reports whether a setting of a listener or rule is as wanted; what is absent in the wanted one is not compared. */
export function hasSetting(wanted: unknown, present: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return wanted === present;
  if (typeof present !== 'object' || present === null) return false;
  // A check that is off has no other settings.
  if ('isOn' in wanted && wanted.isOn === false) return 'isOn' in present && present.isOn === false;
  return Object.entries(wanted).every(
    ([key, value]) => value === undefined || hasSetting(value, Reflect.get(present, key)),
  );
}

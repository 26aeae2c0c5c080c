/** One thing wrong with a request; `reason` as in `metav1.CauseType`. */
export type Cause = { readonly field?: string; readonly reason: string; readonly message: string };

/** Makes the cause for a value that may not be what it is. */
export function invalidValue(field: string, value: unknown, message: string): Cause {
  return { field, reason: 'FieldValueInvalid', message: `Invalid value: ${show(value)}: ${message}` };
}

/** Makes the cause for a value that is missing. */
export function requiredValue(field: string, message = ''): Cause {
  return { field, reason: 'FieldValueRequired', message: `Required value${message === '' ? '' : `: ${message}`}` };
}

/** Makes the cause for a value that is none of those there are. */
export function unsupportedValue(field: string, value: unknown, values: readonly unknown[]): Cause {
  const all = values.map((one) => JSON.stringify(one)).join(', ');
  const message = `Unsupported value: ${show(value)}: supported values: ${all}`;
  return { field, reason: 'FieldValueNotSupported', message };
}

/** Makes the cause for a change that nobody may make. */
export function forbiddenValue(field: string, message: string): Cause {
  return { field, reason: 'FieldValueForbidden', message: `Forbidden: ${message}` };
}

/** Shows a value as Go's field errors do. */
export function show(value: unknown): string {
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}

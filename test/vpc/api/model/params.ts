import { ApiError } from './api-error.ts';

/** The parameters of one request, read with the API's own complaints. */
export class Params {
  readonly raw: Readonly<Record<string, unknown>>;

  /** @throws ApiError MissingParameter, UnknownParameter */
  constructor(raw: Readonly<Record<string, unknown>>, required: readonly string[], optional: readonly string[]) {
    this.raw = raw;
    for (const name of required) {
      if (raw[name] === undefined) throw new ApiError('MissingParameter', `The parameter ${name} is missing.`);
    }
    for (const name of Object.keys(raw)) {
      if (!required.includes(name) && !optional.includes(name)) {
        throw new ApiError('UnknownParameter', `The parameter ${name} is not recognized.`);
      }
    }
  }

  has(name: string): boolean {
    return this.raw[name] !== undefined;
  }

  /** A text of at most `most` characters; '' when absent. */
  text(name: string, most = 1_000): string {
    const value = this.raw[name] ?? '';
    if (typeof value !== 'string') throw invalidType(name, 'a string');
    if (value.length > most) throw new ApiError('InvalidParameterValue.TooLong', `${name} exceeds ${most} characters.`);
    return value;
  }

  /** A whole number; `fallback` when absent. */
  integer(name: string, fallback: number, min: number, max: number): number {
    const value = this.raw[name] ?? fallback;
    if (typeof value !== 'number' || !Number.isInteger(value)) throw invalidType(name, 'an integer');
    if (value < min || value > max) {
      throw new ApiError('InvalidParameterValue.Range', `${name} must be from ${min} to ${max}.`);
    }
    return value;
  }

  /** A list of texts, none twice; [] when absent. */
  texts(name: string, most: number): readonly string[] {
    const value = this.raw[name] ?? [];
    if (!Array.isArray(value) || value.some((item) => typeof item !== 'string')) throw invalidType(name, 'a list');
    const texts = value.map(String);
    if (texts.length > most) throw tooMany(name, most);
    if (new Set(texts).size < texts.length) {
      throw new ApiError('InvalidParameterValue.DuplicatePara', `${name} holds a value twice.`);
    }
    return texts;
  }

  /** The field `key` of a list of objects; [] when absent. */
  textsOf(name: string, key: string, most: number): readonly string[] {
    const objects = this.objects(name);
    if (objects.length > most) throw tooMany(name, most);
    const texts = objects.map((object) => object[key]);
    if (texts.some((text) => typeof text !== 'string')) throw invalidType(`${name}.${key}`, 'a string');
    if (new Set(texts).size < texts.length) {
      throw new ApiError('InvalidParameterValue.DuplicatePara', `${name} holds a value twice.`);
    }
    return texts.map(String);
  }

  /** A list of objects; [] when absent. */
  objects(name: string): readonly Readonly<Record<string, unknown>>[] {
    const value = this.raw[name] ?? [];
    if (!Array.isArray(value) || value.some((item) => typeof item !== 'object' || item === null)) {
      throw invalidType(name, 'a list of objects');
    }
    return value;
  }

  /** `Tags: [{Key, Value}]` by key. */
  tags(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.objects('Tags').map((tag) => [String(tag['Key']), String(tag['Value'] ?? '')]));
  }
}

function invalidType(name: string, expected: string): ApiError {
  return new ApiError('InvalidParameter', `The parameter ${name} must be ${expected}.`);
}

function tooMany(name: string, most: number): ApiError {
  return new ApiError('InvalidParameterValue.LimitExceeded', `${name} holds more than ${most} values.`);
}

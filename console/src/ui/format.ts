/** Figures as they are shown: exact, with the same digits everywhere. */

const WHOLE = new Intl.NumberFormat("en-US");
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const INSTANT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const wholeNumber = (value: number): string => WHOLE.format(value);
export const score = (value: number): string => value.toFixed(3);
export const percent = (value: number): string => `${Math.round(value * 100)} %`;
export const day = (value: string | Date): string => DAY.format(new Date(value));
export const instant = (value: string | Date): string => INSTANT.format(new Date(value));

export function milliseconds(value: number): string {
  return value < 10 ? `${value.toFixed(1)} ms` : `${wholeNumber(Math.round(value))} ms`;
}

/** "1 passage", "6 passages". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${wholeNumber(count)} ${count === 1 ? one : many}`;
}

/** Part of a text by code points, which is how the API counts characters; JavaScript counts UTF-16 units. */
export function sliceLetters(text: string, start: number, end: number): string {
  if (!/[\ud800-\udfff]/.test(text)) return text.slice(start, end);
  return Array.from(text).slice(start, end).join("");
}

/** An instant as a field for dates and times takes it: in the zone of the browser, to the minute. */
export function localTime(value: string | Date): string {
  const moment = new Date(value);
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** What a field for dates and times has, as an instant; null where it is empty. */
export const instantOf = (time: string): string | null => (time === "" ? null : new Date(time).toISOString());

/** Test questions that were made from answer records; they stay in this browser until logout. */
import type { Question, QuestionSet } from "./question-set";

const STORED = "conspectus-questions";
const MOST = 500;
export const SET_NAME = "From answer records";

/** The questions, oldest first; none where the browser has nothing that can be read. */
export function storedQuestions(): readonly Question[] {
  try {
    const questions: unknown = JSON.parse(localStorage.getItem(STORED) ?? "[]");
    return Array.isArray(questions) ? (questions as Question[]) : [];
  } catch {
    return [];
  }
}

/** Adds a question, in place of one with the same id; returns all. The oldest beyond 500 are dropped. */
export function addQuestion(question: Question): readonly Question[] {
  const others = storedQuestions().filter(({ id }) => id !== question.id);
  const questions = [...others, question].slice(-MOST);
  localStorage.setItem(STORED, JSON.stringify(questions));
  return questions;
}

export function forgetQuestions(): void {
  localStorage.removeItem(STORED);
}

/** The set of these questions, if there are any. */
export function storedSet(): QuestionSet | undefined {
  const questions = storedQuestions();
  return questions.length === 0 ? undefined : { name: SET_NAME, questions };
}
